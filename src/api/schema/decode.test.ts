import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isStatus } from '../machinery/status.ts'
import { schemaFor } from './builtIn.ts'
import { decode, strictDecodingError, strictProblems } from './decode.ts'
import { applyDefaults } from './defaults.ts'
import type { Schema } from './schema.ts'

function kind(group: string, version: string, name: string): Schema {
  const schema = schemaFor(group, version, name)
  assert.ok(schema)
  return schema
}
const pod = kind('', 'v1', 'Pod')
const podOf = (spec: unknown, metadata: unknown = { name: 'a' }) => ({ apiVersion: 'v1', kind: 'Pod', metadata, spec })
const container = (extra: object) => podOf({ containers: [{ name: 'c', ...extra }] })

const refused: readonly { name: string; value: unknown; schema?: Schema; want: string }[] = [
  {
    name: 'string for int32',
    value: { apiVersion: 'apps/v1', kind: 'Deployment', spec: { replicas: 'three' } },
    schema: kind('apps', 'v1', 'Deployment'),
    want: 'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32',
  },
  {
    name: 'number for string, in a list',
    value: container({ env: [{ name: 'a', value: 1 }] }),
    want: 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string',
  },
  {
    name: 'bool in labels',
    value: podOf({}, { labels: { a: true } }),
    want: 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string',
  },
  {
    name: 'list for labels',
    value: podOf({}, { labels: [] }),
    want: 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string',
  },
  {
    name: 'object for list of containers',
    value: podOf({ containers: {} }),
    want: 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container',
  },
  {
    name: 'string for bool',
    value: podOf({ hostNetwork: 'yes' }),
    want: 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool',
  },
  {
    name: 'fraction for int64',
    value: podOf({ terminationGracePeriodSeconds: 1.5 }),
    want: 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64',
  },
  {
    name: 'int32 out of range',
    value: podOf({ priority: 3_000_000_000 }),
    want: 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number 3000000000 into Go struct field PodSpec.spec.priority of type int32',
  },
  {
    name: 'integer beyond a double',
    value: podOf({ activeDeadlineSeconds: 2 ** 60 }),
    want: 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number 1152921504606846976 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64',
  },
  {
    name: 'quantity',
    value: container({ resources: { limits: { cpu: 'lots' } } }),
    want: `Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
  },
  {
    name: 'time',
    value: podOf({}, { creationTimestamp: 'yesterday' }),
    want: 'Pod in version "v1" cannot be handled as a Pod: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
  },
  {
    name: 'base64',
    value: { apiVersion: 'v1', kind: 'Secret', data: { a: 'not base64' } },
    schema: kind('', 'v1', 'Secret'),
    want: 'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 3',
  },
  {
    name: 'int-or-string',
    value: { apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 1, targetPort: true }] } },
    schema: kind('', 'v1', 'Service'),
    want: 'Service in version "v1" cannot be handled as a Service: json: cannot unmarshal bool into Go value of type int32',
  },
  { name: 'not an object', value: [], want: 'json: cannot unmarshal array into Go value of type v1.Pod' },
]
for (const c of refused) {
  test(`API-04 type error: ${c.name}`, () => {
    assert.throws(
      () => decode(structuredClone(c.value), c.schema ?? pod, { unknown: 'drop' }),
      (error) => {
        assert.ok(isStatus(error, 'BadRequest'))
        assert.equal(error.message, c.want)
        return true
      },
    )
  })
}

test('null is absent, times and quantities become canonical, unknown fields are dropped and listed', () => {
  const value = {
    apiVersion: 'v1',
    kind: 'Pod',
    status: null,
    metadata: { name: 'a', creationTimestamp: null, deletionTimestamp: '2024-01-01T01:00:00.5+01:00', labels: { a: null }, colour: 'red' },
    spec: { containers: [{ name: 'c', imag: 'x', resources: { limits: { cpu: 2, memory: '1024Mi' }, requests: { cpu: '0.5' } } }], extra: {} },
  }
  assert.deepEqual(decode(value, pod, { unknown: 'collect' }), {
    object: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a', deletionTimestamp: '2024-01-01T00:00:00Z', labels: { a: '' } },
      spec: { containers: [{ name: 'c', resources: { limits: { cpu: '2', memory: '1Gi' }, requests: { cpu: '500m' } } }] },
      status: {},
    },
    unknownFields: ['metadata.colour', 'spec.containers[0].imag', 'spec.extra'],
  })
})

test('raw extensions and micro times are kept', () => {
  const revision = { apiVersion: 'apps/v1', kind: 'ControllerRevision', metadata: {}, data: { anything: [1, null, { goes: true }] }, revision: 1 }
  assert.deepEqual(decode(structuredClone(revision), kind('apps', 'v1', 'ControllerRevision'), { unknown: 'collect' }), { object: revision, unknownFields: [] })
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: {}, spec: { renewTime: '2024-01-01T00:00:00.123456Z' } }
  assert.deepEqual(decode(structuredClone(lease), kind('coordination.k8s.io', 'v1', 'Lease'), { unknown: 'drop' }).object, lease)
})

const absent: readonly { name: string; schema: Schema; value: object; want: object }[] = [
  {
    name: 'texts, numbers and structs, also inside structs that were absent themselves',
    schema: kind('', 'v1', 'Event'),
    value: { series: {} },
    want: { series: {}, metadata: {}, involvedObject: {}, source: {}, reportingComponent: '', reportingInstance: '' },
  },
  {
    name: 'booleans and quantities; fields that are pointers or omitted when empty stay absent',
    schema: pod,
    value: { spec: { containers: [{ ports: [{}], env: [{ valueFrom: { resourceFieldRef: {} } }] }] }, status: { containerStatuses: [{}] } },
    want: {
      metadata: {},
      spec: {
        containers: [
          { name: '', ports: [{ containerPort: 0 }], env: [{ name: '', valueFrom: { resourceFieldRef: { resource: '', divisor: '0' } } }], resources: {} },
        ],
      },
      status: { containerStatuses: [{ name: '', state: {}, lastState: {}, ready: false, restartCount: 0, image: '', imageID: '' }] },
    },
  },
  {
    name: 'int-or-string; lists, maps and times stay absent',
    schema: kind('', 'v1', 'Service'),
    value: { spec: { ports: [{}] }, status: { conditions: [{}] } },
    want: {
      metadata: {},
      spec: { ports: [{ port: 0, targetPort: 0 }] },
      status: { conditions: [{ type: '', status: '', reason: '', message: '' }], loadBalancer: {} },
    },
  },
  {
    name: 'a null is an absent one, a null item of a list an empty one',
    schema: kind('rbac.authorization.k8s.io', 'v1', 'RoleBinding'),
    value: { metadata: { name: 'b' }, subjects: [null, { kind: 'User', name: null }], roleRef: null },
    want: {
      metadata: { name: 'b' },
      subjects: [
        { kind: '', name: '' },
        { kind: 'User', name: '' },
      ],
      roleRef: { apiGroup: '', kind: '', name: '' },
    },
  },
]
for (const c of absent) {
  test(`API-05 what Go always has is filled in: ${c.name}`, () => {
    assert.deepEqual(decode(structuredClone(c.value), c.schema, { unknown: 'drop' }).object, c.want)
  })
}

const emptied: readonly { name: string; value: object; want: object }[] = [
  {
    name: 'lists, maps, texts, numbers and booleans that Go omits when empty',
    value: { metadata: { name: 'a', finalizers: [], labels: {}, namespace: '' }, spec: { hostNetwork: false, nodeName: '', tolerations: [], volumes: null } },
    want: { metadata: { name: 'a' }, spec: {}, status: {} },
  },
  {
    name: 'what is a pointer or never omitted stays',
    value: { metadata: {}, spec: { automountServiceAccountToken: false, priority: 0, securityContext: {}, containers: [] } },
    want: { metadata: {}, spec: { automountServiceAccountToken: false, priority: 0, securityContext: {}, containers: [] }, status: {} },
  },
  {
    name: 'empty members of lists and maps stay',
    value: { metadata: { annotations: { a: '' } }, spec: { containers: [], imagePullSecrets: [{}], nodeSelector: { a: '' } } },
    want: { metadata: { annotations: { a: '' } }, spec: { containers: [], imagePullSecrets: [{}], nodeSelector: { a: '' } }, status: {} },
  },
]
for (const c of emptied) {
  test(`API-05 sent empty is left out: ${c.name}`, () => {
    assert.deepEqual(decode(structuredClone(c.value), pod, { unknown: 'drop' }).object, c.want)
  })
}

test('API-05 a default takes the place of an empty text', () => {
  const service = decode({ metadata: {}, spec: { ports: [{ port: 1, protocol: '' }] } }, kind('', 'v1', 'Service'), { unknown: 'drop' }).object
  applyDefaults(service, kind('', 'v1', 'Service'))
  assert.deepEqual(service.spec, { ports: [{ port: 1, targetPort: 0, protocol: 'TCP' }] })
})

test('API-11 an applied configuration keeps out what it leaves out, and in what it says is empty', () => {
  const value = { metadata: { finalizers: [] }, spec: { containers: [{ name: 'c', ports: [{}], env: null, args: [null] }], nodeSelector: { a: null } } }
  assert.deepEqual(decode(structuredClone(value), pod, { unknown: 'collect', absent: 'keep' }).object, value)
})

test('API-13 the strict error lists unknown and duplicate fields', () => {
  const error = strictDecodingError({ kind: 'Pod', apiVersion: 'v1' }, strictProblems(['spec.foo'], ['spec.bar']))
  assert.equal(error.message, 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.foo", duplicate field "spec.bar"')
})

test('API-05 constant defaults are set inside present parts only', () => {
  const service = { spec: { ports: [{ port: 1 }, { port: 2, protocol: 'UDP' }] } }
  applyDefaults(service, kind('', 'v1', 'Service'))
  assert.deepEqual(service, {
    spec: {
      ports: [
        { port: 1, protocol: 'TCP' },
        { port: 2, protocol: 'UDP' },
      ],
    },
  })
  const empty = {}
  applyDefaults(empty, kind('', 'v1', 'Service'))
  assert.deepEqual(empty, {})
})

test('times of every day of a year are kept, and what is no day, or in another form, is refused or rewritten', () => {
  const lease = kind('coordination.k8s.io', 'v1', 'Lease')
  const decoded = (creationTimestamp: string, renewTime: string) => {
    const { object } = decode({ metadata: { name: 'a', creationTimestamp }, spec: { renewTime } }, lease, { unknown: 'drop' })
    const { metadata, spec } = object as { metadata: { creationTimestamp: string }; spec: { renewTime: string } }
    return [metadata.creationTimestamp, spec.renewTime]
  }
  for (const date of ['2026-01-31', '2026-04-30', '2026-02-28', '2024-02-29', '2026-11-30', '2026-12-31']) {
    const times = [`${date}T23:59:59Z`, `${date}T00:00:00.000001Z`] as const
    assert.deepEqual(decoded(...times), times)
  }
  assert.deepEqual(decoded('2026-11-30T01:00:00+01:00', '2026-11-30T00:00:00.5Z'), ['2026-11-30T00:00:00Z', '2026-11-30T00:00:00.500000Z'])
  for (const date of ['2026-02-29', '2026-04-31', '2026-11-31', '2026-13-01', '2026-00-10', '2026-01-32', '2026-01-00']) {
    assert.throws(() => decoded(`${date}T00:00:00Z`, '2026-01-01T00:00:00.000000Z'), isStatus)
    assert.throws(() => decoded('2026-01-01T00:00:00Z', `${date}T00:00:00.000000Z`), isStatus)
  }
})

test('fields that are decoded already stay as they are, those of the same name further down do not', () => {
  const value = { ...podOf({ containers: [], metadata: 1 }, { name: 'a', unknown: 1 }) }
  const { object, unknownFields } = decode(value, pod, { unknown: 'collect', decoded: new Set(['metadata']) })
  assert.deepEqual(object.metadata, { name: 'a', unknown: 1 })
  assert.deepEqual(unknownFields, ['spec.metadata'])
})
