import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConfigMap, Event as CoreEvent, Namespace, Node, Secret } from '#api/gen/types/core.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { deepCopy } from '#base/frozen'
import { seededRandom } from '#base/random'
import { lease } from '../coordination/lease.ts'
import { configMap } from './configMap.ts'
import { coreEvent, coreEventOf, event, eventOf } from './event.ts'
import { namespace } from './namespace.ts'
import { node } from './node.ts'
import { secret } from './secret.ts'

const path = FieldPath.of()
const context = { nowMs: 0, random: seededRandom(1) }
const texts = (errors: readonly { field: string; body: string }[] = []) => errors.map((error) => `${error.field}: ${error.body}`)

test('a namespace is born Active, labelled, with its finalizer, and keeps all three', () => {
  const made = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a' } } as Namespace
  namespace.defaults?.(made, 'v1')
  namespace.prepareForCreate?.({ obj: made, path, context })
  assert.deepEqual(made, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'a', labels: { 'kubernetes.io/metadata.name': 'a' } },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  })
  const changed: Namespace = { ...deepCopy(made), spec: {}, status: { phase: 'Terminating' } }
  namespace.prepareForUpdate?.({ obj: changed, old: made, path, context })
  assert.deepEqual([changed.spec, changed.status], [made.spec, made.status])
})

test('API-24 an update of a namespace does not restore finalizers that were removed', () => {
  const old: Namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' }, spec: {}, status: { phase: 'Terminating' } }
  const obj: Namespace = { ...old, spec: { finalizers: ['kubernetes'] } }
  namespace.prepareForUpdate?.({ obj, old, path, context })
  assert.deepEqual(obj.spec, {})
})

test('a namespace’s finalizers are qualified', () => {
  const made = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a' }, spec: { finalizers: ['kubernetes', 'mine'] }, status: {} }
  assert.deepEqual(texts(namespace.validate?.({ obj: made, path, context })), [
    'spec.finalizers: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified',
  ])
  assert.deepEqual(texts(namespace.subresources?.finalize?.validateUpdate?.({ obj: made, old: made, path, context })), [
    'spec.finalizers[1]: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified',
  ])
  const standard = { ...made, spec: { finalizers: ['kubernetes', 'orphan', 'foregroundDeletion', 'example.com/mine'] } }
  assert.deepEqual(texts(namespace.validate?.({ obj: standard, path, context })), [])
})

const secretOf = (rest: Partial<Secret>): Secret => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, ...rest })

test('stringData becomes data, and Opaque is the type', () => {
  const made = secretOf({ data: { a: 'eA==' }, stringData: { a: 'y', b: 'é' } })
  secret.defaults?.(made, 'v1')
  assert.deepEqual(made, secretOf({ type: 'Opaque', data: { a: 'eQ==', b: 'w6k=' } }))
})

const secrets: [string, Partial<Secret>, string[]][] = [
  ['good', { type: 'Opaque', data: { a: 'eA==' } }, []],
  ['key', { type: 'Opaque', data: { '..a': '' } }, [`data[..a]: Invalid value: "..a": must not start with '..'`]],
  ['tls', { type: 'kubernetes.io/tls', data: { 'tls.crt': '' } }, ['data[tls.key]: Required value']],
  ['basic', { type: 'kubernetes.io/basic-auth' }, ['data[username]: Required value', 'data[password]: Required value']],
  ['token', { type: 'kubernetes.io/service-account-token' }, ['metadata.annotations[kubernetes.io/service-account.name]: Required value']],
  ['large', { type: 'Opaque', data: { a: 'AAAA'.repeat(349_526) } }, ['data: Too long: may not be more than 1048576 bytes']],
]
const docker = (text: string) => ({ type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': Buffer.from(text).toString('base64') } })
const unreadable = 'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": '
secrets.push(
  ['docker configuration', docker('{"auths":{}}'), []],
  ['docker configuration that is null', docker('null'), []],
  ['no docker configuration', { type: 'kubernetes.io/dockerconfigjson' }, ['data[.dockerconfigjson]: Required value']],
  ['docker configuration of another sort', docker('["hunter2"]'), [`${unreadable}json: cannot unmarshal array into Go value of type map[string]interface {}`]],
  ['docker configuration that is no JSON', docker('hunter2'), [`${unreadable}invalid character 'h' looking for beginning of value`]],
)
for (const [name, rest, want] of secrets)
  test(`API-04 secret validation: ${name}`, () => assert.deepEqual(texts(secret.validate?.({ obj: secretOf(rest), path, context })), want))

test('API-04 a config map is too large as a whole', () => {
  const obj: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, data: { a: 'x'.repeat(1024 * 1024), b: 'y' } }
  assert.deepEqual(texts(configMap.validate?.({ obj, path, context })), ['[]: Too long: may not be more than 1048576 bytes'])
})

test('an immutable secret or config map stays as it is', () => {
  const old = secretOf({ type: 'Opaque', immutable: true, data: { a: 'eA==' } })
  assert.deepEqual(texts(secret.validateUpdate?.({ obj: secretOf({ type: 'kubernetes.io/tls', data: {} }), old, path, context })), [
    'type: Invalid value: "kubernetes.io/tls": field is immutable',
    'immutable: Forbidden: field is immutable when `immutable` is set',
    'data: Forbidden: field is immutable when `immutable` is set',
    'data[tls.crt]: Required value',
    'data[tls.key]: Required value',
  ])
  const map: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: {}, immutable: true, data: { a: 'x' } }
  assert.deepEqual(texts(configMap.validateUpdate?.({ obj: { ...map, data: { a: 'y' } }, old: map, path, context })), [
    'data: Forbidden: field is immutable when `immutable` is set',
  ])
})

test('a config map’s keys are unique over both maps', () => {
  const map: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: {}, data: { a: 'x' }, binaryData: { a: 'eA==' } }
  assert.deepEqual(texts(configMap.validate?.({ obj: map, path, context })), ['data[a]: Invalid value: "a": duplicate of key present in binaryData'])
})

const nodeOf = (rest: Partial<Node>): Node => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, spec: {}, status: {}, ...rest })

test('API-17 node cells', () => {
  const made = nodeOf({
    metadata: { name: 'n', labels: { 'node-role.kubernetes.io/worker': '', 'node-role.kubernetes.io/control-plane': '' } },
    spec: { unschedulable: true },
    status: { conditions: [{ type: 'Ready', status: 'True' }], addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] },
  })
  assert.deepEqual(
    (node.columns ?? []).map((column) => column.value(made, 0)),
    ['n', 'Ready,SchedulingDisabled', 'control-plane,worker', '<unknown>', '', '10.0.0.1', '<none>', '<unknown>', '<unknown>', '<unknown>'],
  )
  assert.equal(node.columns?.[1]?.value(nodeOf({}), 0), 'Unknown')
})

test('taints are checked and unique; a pod CIDR is given once', () => {
  const taints = [
    { key: 'a', effect: 'NoSchedule' },
    { key: 'a', effect: 'NoSchedule' },
    { key: 'b', effect: 'Never' },
  ]
  assert.deepEqual(texts(node.validate?.({ obj: nodeOf({ spec: { taints } }), path, context })), [
    'metadata.taints[1]: Duplicate value: {"key":"a","effect":"NoSchedule"}: taints must be unique by key and effect pair',
    'metadata.taints[2].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
  ])
  const old = nodeOf({ spec: { podCIDRs: ['10.0.0.0/24'] } })
  assert.deepEqual(texts(node.validateUpdate?.({ obj: nodeOf({ spec: { podCIDRs: ['10.0.1.0/24'] } }), old, path, context })), [
    'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
  ])
})

const legacy: CoreEvent = {
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: 'e', namespace: 'default' },
  involvedObject: { kind: 'Pod', name: 'p', namespace: 'default' },
  reason: 'Started',
  type: 'Normal',
  message: ' hello\n',
  count: 3,
  firstTimestamp: '1970-01-01T00:00:00Z',
  lastTimestamp: '1970-01-01T00:01:00Z',
  source: { component: 'kubelet', host: 'n' },
}

test('an event has two shapes and loses nothing between them', () => {
  const modern = eventOf(legacy)
  assert.deepEqual([modern.note, modern.regarding, modern.deprecatedCount, modern.apiVersion], [' hello\n', legacy.involvedObject, 3, 'events.k8s.io/v1'])
  const { eventTime, ...back } = coreEventOf(modern)
  assert.deepEqual([back, eventTime], [legacy, null])
})

test('API-17 both shapes show the same columns', () => {
  const want = ['2m', 'Normal', 'Started', 'pod/p', '', 'kubelet, n', 'hello', '3m', 3, 'e']
  assert.deepEqual(
    (coreEvent.columns ?? []).map((column) => column.value(legacy, 180_000)),
    want,
  )
  assert.deepEqual(
    (event.columns ?? []).map((column) => column.value(eventOf(legacy), 180_000)),
    want,
  )
  assert.equal(event.selectableFields?.['regarding.name']?.(eventOf(legacy)), 'p')
})

test('an event lives where its object does', () => {
  const made = { ...legacy, involvedObject: { ...legacy.involvedObject, namespace: 'other' } }
  assert.deepEqual(texts(coreEvent.validate?.({ obj: made, path, context })), [
    'involvedObject.namespace: Invalid value: "other": does not match event.namespace',
  ])
})

test('a lease counts from zero up', () => {
  const made = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: {}, spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } }
  assert.deepEqual(texts(lease.validate?.({ obj: made, path, context })), [
    'spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0',
    'spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0',
  ])
})
