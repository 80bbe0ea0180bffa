import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeviceClass, ResourceClaim, ResourceSlice } from '#api/gen/types/resource.v1'
import type { DeviceTaintRule } from '#api/gen/types/resource.v1beta2'
import { FieldPath } from '#api/machinery/fieldPath'
import { isDns1123Label, isQualifiedName } from '#api/machinery/names'
import { seededRandom } from '#base/random'
import { type CreateRow, changed, kindRules, type UpdateRow } from '#testing/kindRules'
import { deviceClass } from './deviceClass.ts'
import { deviceTaintRule } from './deviceTaintRule.ts'
import { resourceClaim } from './resourceClaim.ts'
import { resourceSlice } from './resourceSlice.ts'

const apiVersion = 'resource.k8s.io/v1'
const goodClaim: ResourceClaim = {
  apiVersion,
  kind: 'ResourceClaim',
  metadata: { name: 'c', namespace: 'd' },
  spec: { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpus.example.com' } }] } },
  status: {},
}
const onClaim = kindRules('DRA-01', resourceClaim, goodClaim)
const request = 'spec.devices.requests[0]'
const exactly = 'spec.devices.requests.0.exactly'
const notARequest = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
onClaim.defaults('one device', {}, { [`${exactly}.allocationMode`]: 'ExactCount', [`${exactly}.count`]: 1 })
/** Loops over all attributes within loops over them: 32 items a level. */
const tooComplex = `device.attributes.all(a, ${'device.attributes.all(b, '.repeat(3)}device.attributes.all(c, c.startsWith(a))${')'.repeat(4)}`
onClaim.create([
  ['a good one', {}, []],
  ['a request twice', { 'spec.devices.requests.1': goodClaim.spec.devices?.requests?.[0] }, ['spec.devices.requests[1]: Duplicate value: "gpu"']],
  ['no class', { [`${exactly}.deviceClassName`]: '' }, [`${request}.exactly.deviceClassName: Required value`]],
  ['neither one nor alternatives', { [exactly]: undefined }, [`${request}: Required value: exactly one of \`exactly\` or \`firstAvailable\` is required`]],
  [
    'all, and a number',
    { [`${exactly}.allocationMode`]: 'All', [`${exactly}.count`]: 2 },
    [`${request}.exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'`],
  ],
  ['fewer than none', { [`${exactly}.count`]: -1 }, [`${request}.exactly.count: Invalid value: -1: must be greater than zero`]],
  [
    'an unknown mode',
    { [`${exactly}.allocationMode`]: 'Some' },
    [`${request}.exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"`],
  ],
  ['a selector without an expression', { [`${exactly}.selectors`]: [{}] }, [`${request}.exactly.selectors[0].cel: Required value`]],
  ...[
    'device.driver == "gpu.example.com"',
    'device.attributes["gpu.example.com"].model == "A100" && device.attributes["gpu.example.com"].memory.isGreaterThan(semver("1.0.0"))',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
    'cel.bind(gpu, device.attributes["gpu.example.com"], gpu.oneBool && gpu.anotherBool)',
    'device.attributes["gpu.example.com"].healthy',
    'device.allowMultipleAllocations == true',
    'device.attributes["gpu.example.com"].exists(name, name.startsWith("x"))',
  ].map((expression): CreateRow => [`the selector ${expression}`, { [`${exactly}.selectors`]: [{ cel: { expression } }] }, []]),
  ...(
    [
      ['device.driver', 'Invalid value: "device.driver": must evaluate to bool or the unknown type, not string'],
      [
        'device.vendor == ""',
        `Invalid value: "device.vendor == \\"\\"": compilation failed: ERROR: <input>:1:7: undefined field 'vendor'\n | device.vendor == ""\n | ......^`,
      ],
      [
        'gadget.driver == ""',
        `Invalid value: "gadget.driver == \\"\\"": compilation failed: ERROR: <input>:1:1: undeclared reference to 'gadget' (in container '')\n | gadget.driver == ""\n | ^`,
      ],
      [tooComplex, 'Forbidden: too complex, exceeds cost limit'],
    ] as const
  ).map(
    ([expression, fault]): CreateRow => [
      `the selector ${expression}`,
      { [`${exactly}.selectors`]: [{ cel: { expression } }] },
      [`${request}.exactly.selectors[0].cel.expression: ${fault}`],
    ],
  ),
  [
    'a selector that cannot be read',
    { [`${exactly}.selectors`]: [{ cel: { expression: '(' } }] },
    [
      `${request}.exactly.selectors[0].cel.expression: Invalid value: "(": compilation failed: ERROR: <input>:1:2: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | (\n | .^`,
    ],
  ],
  [
    'a constraint on nothing that is asked for',
    { 'spec.devices.constraints': [{ requests: ['cpu'], matchAttribute: 'a.b/c' }] },
    [`spec.devices.constraints[0].requests[0]: Invalid value: "cpu": ${notARequest}`],
  ],
  [
    'a constraint on an attribute without a domain',
    { 'spec.devices.constraints': [{ matchAttribute: 'c' }] },
    ['spec.devices.constraints[0].matchAttribute: Invalid value: "c": a fully qualified name must be a domain and a name separated by a slash'],
  ],
  ['a configuration without a driver', { 'spec.devices.config': [{}] }, ['spec.devices.config[0].opaque: Required value']],
  [
    'a toleration with a value for nothing',
    { [`${exactly}.tolerations`]: [{ operator: 'Exists', value: 'x' }] },
    [`${request}.exactly.tolerations[0].value: Invalid value: "x": must be empty for operator \`Exists\``],
  ],
])
const result = { request: 'gpu', driver: 'd.example.com', pool: 'p', device: 'gpu-0' }
const user = { resource: 'pods', name: 'p', uid: '1' }
const allocation = { devices: { results: [result] } }
onClaim.subresource('status', [
  ['allocating', { 'status.allocation': allocation }, []],
  [
    'allocating for another request',
    { 'status.allocation': { devices: { results: [{ ...result, request: 'cpu' }] } } },
    [`status.allocation.devices.results[0].request: Invalid value: "cpu": ${notARequest}`],
  ],
  ['reserving what is not allocated', { 'status.reservedFor': [user] }, ['status.reservedFor: Forbidden: may not be specified when `allocated` is not set']],
  ['reserving twice', { 'status.allocation': allocation, 'status.reservedFor': [user, user] }, ['status.reservedFor[1]: Duplicate value: "1"']],
  [
    'reserving what goes away',
    { 'status.reservedFor': [user] },
    ['status.reservedFor: Forbidden: new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set'],
    { 'status.allocation': allocation, 'metadata.deletionTimestamp': '2026-01-01T00:00:00Z' },
  ],
  [
    'a device that is not of it',
    { 'status.devices': [{ driver: 'd.example.com', pool: 'p', device: 'gpu-9' }] },
    ['status.devices[0]: Invalid value: "d.example.com/p/gpu-9": must be an allocated device in the claim'],
    { 'status.allocation': allocation },
  ],
])
onClaim.cells('a claim that is used', { 'status.allocation': allocation, 'status.reservedFor': [user] }, { Name: 'c', State: 'allocated,reserved' })

const goodClass: DeviceClass = { apiVersion, kind: 'DeviceClass', metadata: { name: 'gpus.example.com' }, spec: {} }
const onClass = kindRules('DRA-01', deviceClass, goodClass)
onClass.create([
  ['an empty one', {}, []],
  ['a native resource', { 'spec.extendedResourceName': 'cpu' }, ['spec.extendedResourceName: Invalid value: "cpu": must be a valid extended resource name']],
  [
    'a configuration that is no object',
    { 'spec.config': [{ opaque: { driver: 'd.example.com', parameters: [1] } }] },
    ['spec.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object'],
  ],
])
onClass.update([['an old expression may stay', { 'metadata.labels': { a: 'b' } }, [], { 'spec.selectors': [{ cel: { expression: '(' } }] }]])

const goodSlice: ResourceSlice = {
  apiVersion,
  kind: 'ResourceSlice',
  metadata: { name: 's' },
  spec: { driver: 'd.example.com', nodeName: 'n', pool: { name: 'p', generation: 1, resourceSliceCount: 1 }, devices: [{ name: 'gpu-0' }] },
}
const onSlice = kindRules('DRA-01', resourceSlice, goodSlice)
const device = 'spec.devices[0]'
const devicesOf = (count: number, more: object = {}) => Array.from({ length: count }, (_, i) => ({ name: `gpu-${i}`, ...more }))
const place = 'exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required'
onSlice.create([
  ['a good one', {}, []],
  ['nowhere', { 'spec.nodeName': undefined }, [`spec: Required value: ${place}`]],
  ['here and everywhere', { 'spec.allNodes': true }, [`spec: Invalid value: "{\`nodeName\`, \`allNodes\`}": ${place}, but multiple fields are set`]],
  ['an empty pool', { 'spec.pool.resourceSliceCount': 0 }, ['spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero']],
  ['a device twice', { 'spec.devices.1': { name: 'gpu-0' } }, ['spec.devices[1]: Duplicate value: "gpu-0"']],
  [
    'an attribute without a value',
    { 'spec.devices.0.attributes': { model: {} } },
    [`${device}.attributes[model]: Invalid value: "": exactly one value must be specified`],
  ],
  [
    'a version that is none',
    { 'spec.devices.0.attributes': { firmware: { version: '1' } } },
    [`${device}.attributes[firmware].version: Invalid value: "1": must be a string compatible with semver.org spec 2.0.0`],
  ],
  ['counters, which another slice may declare', { 'spec.devices.0.consumesCounters': [{ counterSet: 'x', counters: { y: { value: '1' } } }] }, []],
  [
    'counters of an unknown set',
    { 'spec.devices.0.consumesCounters': [{ counterSet: '', counters: {} }] },
    [`${device}.consumesCounters[0].counterSet: Required value`, `${device}.consumesCounters[0].counters: Required value`],
  ],
  [
    'devices and counters',
    { 'spec.sharedCounters': [{ name: 'x', counters: { y: { value: '1' } } }] },
    ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'],
  ],
  ['as many devices as may be', { 'spec.devices': devicesOf(128) }, []],
  [
    'more devices, whose faults are not looked for',
    { 'spec.devices': devicesOf(129, { name: '' }) },
    ['spec.devices: Too many: 129: must have at most 128 items'],
  ],
  [
    'fewer devices where they have taints',
    { 'spec.devices': devicesOf(65, { taints: [{ key: 'a', effect: 'None' }] }) },
    ['spec.devices: Too many: 65: must have at most 64 items'],
  ],
  [
    'a long name of an attribute',
    { 'spec.devices.0.attributes': { [`${'d'.repeat(64)}/${'n'.repeat(32)}`]: { int: 1 } } },
    [`${device}.attributes[${'d'.repeat(47)}...${'d'.repeat(13)}/${'n'.repeat(32)}]: Too long: may not be more than 63 bytes`],
  ],
  [
    'a device nowhere, where each says it',
    { 'spec.nodeName': undefined, 'spec.perDeviceNodeSelection': true, 'spec.devices.0.allNodes': false },
    [
      `${device}.allNodes: Invalid value: false: must be either unset or set to true`,
      `${device}: Required value: exactly one of \`nodeName\`, \`nodeSelector\`, or \`allNodes\` is required when \`perDeviceNodeSelection\` is set to true in the ResourceSlice spec`,
    ],
  ],
  [
    'an unknown taint',
    { 'spec.devices.0.taints': [{ key: 'a', effect: 'Maybe' }] },
    [`${device}.taints[0].effect: Unsupported value: "Maybe": supported values: "NoExecute", "NoSchedule", "None"`],
  ],
  [
    'conditions without failures',
    { 'spec.devices.0.bindingConditions': ['a'] },
    [`${device}.bindingFailureConditions: Invalid value: []: bindingFailureConditions are required to use bindingConditions`],
  ],
])
onSlice.update([
  ['another node', { 'spec.nodeName': 'm' }, ['spec.nodeName: Invalid value: "m": field is immutable']],
  [
    'an old taint of a later release',
    { 'metadata.labels': { a: 'b' } },
    [],
    { 'spec.devices.0.taints': [{ key: 'a', effect: 'Later', timeAdded: '2020-01-01T00:00:00Z' }] },
  ],
  ['another pool', { 'spec.pool.name': 'q' }, ['spec.pool.name: Invalid value: "q": field is immutable']],
])

const capacity = `${device}.capacity[memory]`
const range = `${capacity}.requestPolicy.validRange`
const sharing = (policy: unknown) => ({
  'spec.devices.0.allowMultipleAllocations': true,
  'spec.devices.0.capacity': { memory: { value: '10Gi', requestPolicy: policy } },
})
onSlice.create([
  ['a range', sharing({ default: '2Gi', validRange: { min: '1Gi', max: '8Gi', step: '1Gi' } }), []],
  ['values', sharing({ default: '2Gi', validValues: ['1Gi', '2Gi'] }), []],
  [
    'a policy of a device that is not shared',
    { 'spec.devices.0.capacity': { memory: { value: '1Gi', requestPolicy: {} } } },
    [`${capacity}.requestPolicy: Forbidden: allowMultipleAllocations must be true`],
  ],
  [
    'a range and values',
    sharing({ default: '1Gi', validValues: ['1Gi'], validRange: { min: '1Gi' } }),
    [`${capacity}.requestPolicy: Forbidden: exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`],
  ],
  ['values without a default', sharing({ validValues: ['1Gi'] }), [`${capacity}.requestPolicy.default: Required value: required when validValues is defined`]],
  ['a range without a start', sharing({ default: '1Gi', validRange: {} }), [`${range}.min: Required value: required when validRange is defined`]],
  [
    'a default outside of the range',
    sharing({ default: '9Gi', validRange: { min: '1Gi', max: '8Gi' } }),
    [`${range}.max: Invalid value: "9Gi": default is more than max: 8Gi`],
  ],
  [
    'a range that is larger than the device',
    sharing({ default: '11Gi', validRange: { min: '11Gi', max: '12Gi' } }),
    [
      `${range}.min: Invalid value: "11Gi": min is larger than capacity value: 10Gi`,
      `${range}.max: Invalid value: "12Gi": max is larger than capacity value: 10Gi`,
    ],
  ],
  [
    'a default value between two steps',
    sharing({ default: '2Gi', validRange: { min: '1Gi', step: '3Gi' } }),
    [`${range}.step: Invalid value: "2Gi": value is not a multiple of a given step (3Gi) from (1Gi)`],
  ],
  [
    'values in no order, without the default',
    sharing({ default: '3Gi', validValues: ['2Gi', '1Gi', '11Gi'] }),
    [
      `${capacity}.requestPolicy.validValues[1]: Invalid value: "1Gi": values must be sorted in ascending order`,
      `${capacity}.requestPolicy.validValues[2]: Invalid value: "11Gi": option is larger than capacity value: 10Gi`,
      `${capacity}.requestPolicy.validValues: Invalid value: "3Gi": default value is not valid according to the requestPolicy`,
    ],
  ],
])

const onNetwork = (networkData: unknown) => ({ 'status.devices': [{ driver: 'd.example.com', pool: 'p', device: 'gpu-0', networkData }] })
const network = 'status.devices[0].networkData'
onClaim.subresource('status', [
  ['a network device', onNetwork({ interfaceName: 'net1', ips: ['10.9.8.7/24', '2001:db8::1/64'] }), [], { 'status.allocation': allocation }],
  [
    'addresses that are none, or spelled otherwise',
    onNetwork({ ips: ['10.9.8.7', '2001:DB8::1/64'] }),
    [
      `${network}.ips[0]: Invalid value: "10.9.8.7": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)`,
      `${network}.ips[1]: Invalid value: "2001:DB8::1/64": must be in canonical form ("2001:db8::1/64")`,
    ],
    { 'status.allocation': allocation },
  ],
  [
    'a long name',
    onNetwork({ interfaceName: 'x'.repeat(257) }),
    [`${network}.interfaceName: Too long: may not be more than 256 bytes`],
    { 'status.allocation': allocation },
  ],
])

test('DRA-01 ResourceSlice: a taint counts from when it is written', () => {
  const obj = changed(goodSlice, {
    'spec.devices.0.taints': [
      { key: 'a', effect: 'NoExecute' },
      { key: 'b', effect: 'NoExecute', timeAdded: '2020-01-01T00:00:00Z' },
    ],
  })
  resourceSlice.prepareForCreate?.({ obj, path: FieldPath.of(), context: { nowMs: 0, random: seededRandom(1) } })
  assert.deepEqual(
    obj.spec.devices?.[0]?.taints?.map(({ timeAdded }) => timeAdded),
    ['1970-01-01T00:00:00Z', '2020-01-01T00:00:00Z'],
  )
})

test('DRA-01 ResourceSlice: lists of values are kept only where they were before', () => {
  const context = { nowMs: 0, random: seededRandom(1) }
  const withLists = changed(goodSlice, { 'spec.devices.0.attributes': { a: { strings: ['x'] }, b: { int: 1 } } })
  const created = structuredClone(withLists)
  resourceSlice.prepareForCreate?.({ obj: created, path: FieldPath.of(), context })
  assert.deepEqual(created.spec.devices?.[0]?.attributes, { a: {}, b: { int: 1 } })
  const updated = structuredClone(withLists)
  resourceSlice.prepareForUpdate?.({ obj: updated, old: withLists, path: FieldPath.of(), context })
  assert.deepEqual(updated.spec.devices?.[0]?.attributes, { a: { strings: ['x'] }, b: { int: 1 } })
})

const share = '8a7c6f00-1111-2222-3333-abcdefabcdef'
const ofClaim = { driver: 'd.example.com', pool: 'p', device: 'gpu-0' }
const condition = { type: 'Ready', status: 'True', reason: 'Fine', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }
const uuidForm = 'uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters'
onClaim.update([['nothing but the metadata, whatever is wrong with the spec', { 'metadata.labels': { a: 'b' } }, [], { [`${exactly}.count`]: -1 }]])
onClaim.subresource('status', [
  ['a share', { 'status.allocation': { devices: { results: [{ ...result, shareID: share }] } } }, []],
  ...(
    [
      [share.toUpperCase(), uuidForm],
      ['x', 'error validating uid: invalid UUID length: 1'],
      ['z'.repeat(36), 'error validating uid: invalid UUID format'],
    ] as const
  ).map(
    ([shareID, fault]): UpdateRow => [
      `the share ${shareID}`,
      { 'status.allocation': { devices: { results: [{ ...result, shareID }] } } },
      [`status.allocation.devices.results[0].shareID: Invalid value: "${shareID}": ${fault}`],
    ],
  ),
  ['a condition', { 'status.devices': [{ ...ofClaim, conditions: [condition] }] }, [], { 'status.allocation': allocation }],
  [
    'conditions that say little',
    { 'status.devices': [{ ...ofClaim, conditions: [{ type: 'Ready', status: '', reason: '', message: '', lastTransitionTime: null }, condition] }] },
    [
      'status.devices[0].conditions[0].status: Unsupported value: "": supported values: "False", "True", "Unknown"',
      'status.devices[0].conditions[0].lastTransitionTime: Required value',
      'status.devices[0].conditions[0].reason: Required value',
      'status.devices[0].conditions[1].type: Duplicate value: "Ready"',
    ],
    { 'status.allocation': allocation },
  ],
  [
    'a new name of a user of what goes away',
    { 'status.reservedFor': [{ ...user, name: 'q' }] },
    ['status.reservedFor: Forbidden: new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set'],
    { 'status.allocation': allocation, 'status.reservedFor': [user], 'metadata.deletionTimestamp': '2026-01-01T00:00:00Z' },
  ],
  ['devices that it no longer has', { 'status.allocation': undefined }, [], { 'status.allocation': allocation, 'status.devices': [ofClaim] }],
])

const goodRule: DeviceTaintRule = {
  apiVersion: 'resource.k8s.io/v1beta2',
  kind: 'DeviceTaintRule',
  metadata: { name: 'r' },
  spec: { deviceSelector: { driver: 'd.example.com' }, taint: { key: 'a', effect: 'NoExecute' } },
  status: {},
}
const onRule = kindRules('DRA-01', deviceTaintRule, goodRule)
onRule.create([
  ['a good one', {}, []],
  ['no effect', { 'spec.taint.effect': 'None' }, []],
  [
    'faults everywhere',
    { 'spec.deviceSelector': { driver: '', pool: '', device: 'A' }, 'spec.taint': { key: '', effect: 'Maybe' } },
    [
      'spec.deviceSelector.driver: Required value',
      'spec.deviceSelector.pool: Required value',
      `spec.deviceSelector.device: Invalid value: "A": ${isDns1123Label('A')[0]}`,
      ...isQualifiedName('').map((fault) => `spec.taint.key: Invalid value: "": ${fault}`),
      'spec.taint.effect: Unsupported value: "Maybe": supported values: "NoExecute", "NoSchedule", "None"',
    ],
  ],
])
onRule.update([['an effect of a later release stays', { 'metadata.labels': { a: 'b' } }, [], { 'spec.taint.effect': 'Later' }]])
onRule.subresource('status', [
  [
    'too many conditions',
    { 'status.conditions': Array.from({ length: 9 }, (_, i) => ({ ...condition, type: `T${i}` })) },
    ['status.conditions: Too many: 9: must have at most 8 items'],
  ],
])

test('DRA-01 DeviceTaintRule: a taint counts from when its effect was chosen', () => {
  const context = { nowMs: 0, random: seededRandom(1) }
  const old = changed(goodRule, { 'spec.taint.timeAdded': '2020-01-01T00:00:00Z' })
  const timeAfter = (changes: Record<string, unknown>) => {
    const obj = changed(old, changes)
    deviceTaintRule.prepareForUpdate?.({ obj, old, path: FieldPath.of(), context })
    return obj.spec.taint.timeAdded
  }
  assert.equal(timeAfter({ 'spec.taint.value': 'x' }), '2020-01-01T00:00:00Z')
  assert.equal(timeAfter({ 'spec.taint.effect': 'NoSchedule' }), '1970-01-01T00:00:00Z')
  assert.equal(timeAfter({ 'spec.taint.effect': 'NoSchedule', 'spec.taint.timeAdded': '2021-01-01T00:00:00Z' }), '2021-01-01T00:00:00Z')
})
