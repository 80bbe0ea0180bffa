import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deepFreeze } from '#base/frozen'
import { formatTime } from '#base/time'
import type { KubeObject, ManagedFieldsEntry, Unstructured } from '../machinery/meta.ts'
import { isStatus } from '../machinery/status.ts'
import { schemaFor } from '../schema/builtIn.ts'
import type { Schema } from '../schema/schema.ts'
import { apply } from './apply.ts'
import { trackUpdate } from './trackUpdate.ts'

function schemaOf(group: string, kind: string): Schema {
  const schema = schemaFor(group, 'v1', kind)
  assert.ok(schema)
  return schema
}
const deployments = schemaOf('apps', 'Deployment')
const configMaps = schemaOf('', 'ConfigMap')
const start = 1_700_000_000_000
const time = (seconds: number) => formatTime(start + seconds * 1000)

function configMap(data: Record<string, string> | undefined, metadata: object = {}): Unstructured {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c', namespace: 'd', ...metadata }, ...(data ? { data } : {}) } as Unstructured
}

function update(old: KubeObject | undefined, updated: KubeObject, manager: string, seconds: number, schema = configMaps): Unstructured {
  const copy = structuredClone(updated)
  trackUpdate({ old: old && deepFreeze(old), updated: copy, schema, manager, apiVersion: copy.apiVersion, nowMs: start + seconds * 1000 })
  return copy as Unstructured
}

function applied(
  live: KubeObject | undefined,
  config: KubeObject,
  manager: string,
  seconds: number,
  options: { force?: boolean; schema?: Schema } = {},
): Unstructured {
  return apply({
    live: live && deepFreeze(live),
    applied: config,
    schema: options.schema ?? configMaps,
    manager,
    force: options.force ?? false,
    apiVersion: config.apiVersion,
    nowMs: start + seconds * 1000,
  }) as Unstructured
}

function entry(manager: string, operation: string, seconds: number, fieldsV1: object, apiVersion = 'v1'): ManagedFieldsEntry {
  return { manager, operation, apiVersion, time: time(seconds), fieldsType: 'FieldsV1', fieldsV1: fieldsV1 as Record<string, unknown> }
}

test('API-11 creating a Deployment is tracked as upstream tracks it', () => {
  const object = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'd', uid: 'u', labels: { app: 'web' } },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'web' } },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%' } },
      template: {
        metadata: { labels: { app: 'web' } },
        spec: { containers: [{ name: 'c', image: 'i', resources: {}, ports: [{ containerPort: 80, protocol: 'TCP' }] }], securityContext: {} },
      },
    },
    status: {},
  } as unknown as KubeObject
  assert.deepEqual(update(undefined, object, 'kubectl-create', 0, deployments).metadata.managedFields, [
    entry(
      'kubectl-create',
      'Update',
      0,
      {
        'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } },
        'f:spec': {
          'f:replicas': {},
          'f:selector': {},
          'f:strategy': { 'f:type': {}, 'f:rollingUpdate': { '.': {}, 'f:maxSurge': {} } },
          'f:template': {
            'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } },
            'f:spec': {
              'f:containers': {
                'k:{"name":"c"}': {
                  '.': {},
                  'f:name': {},
                  'f:image': {},
                  'f:resources': {},
                  'f:ports': { '.': {}, 'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {}, 'f:protocol': {} } },
                },
              },
              'f:securityContext': {},
            },
          },
        },
      },
      'apps/v1',
    ),
  ])
})

test('API-11 a manager comes to own what its update changes, and an update without changes keeps all times', () => {
  const created = update(undefined, configMap({ a: '1', b: '1' }), 'one', 0)
  const changed = update(created, { ...configMap({ a: '2', c: '1' }), metadata: created.metadata } as Unstructured, 'two', 5)
  assert.deepEqual(changed.metadata.managedFields, [
    entry('one', 'Update', 0, { 'f:data': {} }),
    entry('two', 'Update', 5, { 'f:data': { 'f:a': {}, 'f:c': {} } }),
  ])
  const same = update(changed, changed, 'two', 9)
  assert.deepEqual(same.metadata.managedFields, changed.metadata.managedFields)
})

test('API-11 an update without managedFields keeps them, one empty entry resets them, and an untracked object stays untracked', () => {
  const created = update(undefined, configMap({ a: '1' }), 'one', 0)
  const without = configMap({ a: '1' })
  assert.deepEqual(update(created, without, 'two', 1).metadata.managedFields, created.metadata.managedFields)
  const reset = configMap({ a: '1' }, { managedFields: [{}] })
  assert.equal(update(created, reset, 'two', 1).metadata.managedFields, undefined)
  assert.equal(update(configMap({ a: '1' }), configMap({ a: '2' }), 'two', 1).metadata.managedFields, undefined)
})

test('API-11 no manager owns fields that the endpoint resets', () => {
  const object = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'x' }, spec: { replicas: 1 }, status: { replicas: 1 } } as unknown as KubeObject
  trackUpdate({ old: undefined, updated: object, schema: deployments, manager: 'm', apiVersion: 'apps/v1', resetFields: ['status'], nowMs: start })
  assert.deepEqual(object.metadata.managedFields?.[0]?.fieldsV1, { 'f:spec': { 'f:replicas': {} } })
})

test('API-11 the claims of the oldest updaters beyond ten become one claim of ancient-changes', () => {
  let object: Unstructured = update(undefined, configMap({ k0: '0' }), 'm0', 0)
  for (let i = 1; i < 12; i++) object = update(object, { ...object, data: { ...(object.data as object), [`k${i}`]: '1' } } as Unstructured, `m${i}`, i)
  const managers = object.metadata.managedFields?.map(({ manager }) => manager)
  assert.deepEqual(managers, ['ancient-changes', ...Array.from({ length: 9 }, (_, i) => `m${i + 3}`)])
  assert.deepEqual(object.metadata.managedFields?.[0]?.fieldsV1, { 'f:data': { '.': {}, 'f:k0': {}, 'f:k1': {}, 'f:k2': {} } })
})

test('API-11 apply creates, changes and removes what it owns', () => {
  const first = applied(undefined, configMap({ a: '1', b: '1' }), 'tool', 0)
  assert.deepEqual(first.metadata.managedFields, [entry('tool', 'Apply', 0, { 'f:data': { 'f:a': {}, 'f:b': {} } })])
  const second = applied(first, configMap({ a: '2' }), 'tool', 5)
  assert.deepEqual(second.data, { a: '2' })
  assert.deepEqual(second.metadata.managedFields, [entry('tool', 'Apply', 5, { 'f:data': { 'f:a': {} } })])
  const again = applied(second, configMap({ a: '2' }), 'tool', 9)
  assert.deepEqual(again, second)
})

test('API-11 an apply of a field of another manager conflicts, and a forced apply takes the field over', () => {
  const first = applied(undefined, configMap({ a: '1', b: '1' }), 'one', 0)
  assert.throws(
    () => applied(first, configMap({ a: '2' }), 'two', 1),
    (error) => {
      assert.ok(isStatus(error, 'Conflict'))
      assert.deepEqual(
        [error.code, error.message, error.details],
        [
          409,
          'Apply failed with 1 conflict: conflict with "one": .data.a',
          { causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.data.a' }] },
        ],
      )
      return true
    },
  )
  const forced = applied(first, configMap({ a: '2' }), 'two', 1, { force: true })
  assert.deepEqual(forced.metadata.managedFields, [
    entry('one', 'Apply', 0, { 'f:data': { 'f:b': {} } }),
    entry('two', 'Apply', 1, { 'f:data': { 'f:a': {} } }),
  ])
})

test('API-11 several conflicts are listed by manager, with the version of an updater', () => {
  const created = update(undefined, configMap({ a: '1', b: '1', c: '1' }), 'kubectl-create', 0)
  assert.throws(() => applied(created, configMap({ a: '2', b: '2' }), 'tool', 1), {
    message: 'Apply failed with 2 conflicts: conflicts with "kubectl-create" using v1:\n- .data.a\n- .data.b',
  })
})

test('API-11 a shared field stays when one of its owners stops applying it', () => {
  const one = applied(undefined, configMap({ a: '1' }), 'one', 0)
  const both = applied(one, configMap({ a: '1', b: '1' }), 'two', 1)
  const left = applied(both, configMap(undefined), 'one', 2)
  assert.deepEqual(left.data, { a: '1', b: '1' })
  assert.deepEqual(applied(left, configMap(undefined), 'two', 3).data, undefined)
})

test('API-11 the first apply to an untracked object adds a claim for the fields that were there', () => {
  const live = configMap({ a: '1' }, { uid: 'u' })
  const result = applied(live, configMap({ b: '1' }), 'tool', 3)
  assert.deepEqual(result.metadata.managedFields, [
    entry('tool', 'Apply', 3, { 'f:data': { 'f:b': {} } }),
    entry('before-first-apply', 'Update', 3, { 'f:data': { '.': {}, 'f:a': {} } }),
  ])
})

test('API-11 kubectl takes over from its own client-side apply without conflicts', () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(configMap({ a: '1' })) }
  const live = update(undefined, configMap({ a: '1' }, { annotations }), 'kubectl-client-side-apply', 0)
  const result = applied(live, configMap({ a: '2' }), 'kubectl', 1)
  assert.deepEqual(result.data, { a: '2' })
  assert.match(result.metadata.annotations?.['kubectl.kubernetes.io/last-applied-configuration'] ?? '', /"a":"2"/)
  assert.throws(() => applied(live, configMap({ a: '2' }), 'other', 1), /Apply failed with 1 conflict/)
})

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'
const earlier = (text: string) => update(undefined, configMap({ a: '1' }, { annotations: { [lastApplied]: text } }), 'kubectl', 0)
const annotation = (object: Unstructured) => object.metadata.annotations?.[lastApplied]

test('API-11 apply by kubectl writes the last-applied annotation as Go does', () => {
  const result = applied(earlier('{}'), configMap({ b: '<&>\u2028', a: '1' }, { annotations: { [lastApplied]: 'own' } }), 'kubectl', 1, { force: true })
  const data = '"data":{"a":"1","b":"\\u003c\\u0026\\u003e\\u2028"}'
  assert.match(annotation(result) ?? '', /^\{"apiVersion":"v1","data":.*,"kind":"ConfigMap","metadata":\{"annotations":\{\},"name":"c"/)
  assert.ok(annotation(result)?.includes(data), annotation(result))
  assert.ok(annotation(result)?.endsWith('}\n'))
})

test('API-11 apply by kubectl leaves an empty last-applied annotation empty', () => {
  assert.equal(annotation(applied(earlier(''), configMap({ a: '1' }), 'kubectl', 1)), '')
})

test('API-11 apply by kubectl drops the last-applied annotation when the configuration exceeds the limit of annotations', () => {
  const result = applied(earlier('{}'), configMap({ a: 'x'.repeat(256 * 1024) }), 'kubectl', 1, { force: true })
  assert.equal(Object.hasOwn(result.metadata.annotations ?? {}, lastApplied), false)
})

function containers(...list: object[]): Unstructured {
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'x' }, spec: { template: { spec: { containers: list } } } } as unknown as Unstructured
}
const containersOf = (object: Unstructured) => (object.spec as { template: { spec: { containers: { name: string }[] } } }).template.spec.containers

test('API-11 list items merge by key: the items of other managers stay, items that are no longer applied are removed', () => {
  const schema = deployments
  const one = applied(undefined, containers({ name: 'a', image: '1' }, { name: 'b', image: '1' }), 'one', 0, { schema })
  const two = applied(one, containers({ name: 'side', image: '1' }), 'two', 1, { schema })
  assert.deepEqual(
    containersOf(two).map(({ name }) => name),
    ['a', 'b', 'side'],
  )
  const three = applied(two, containers({ name: 'b', image: '2' }), 'one', 2, { schema })
  assert.deepEqual(containersOf(three), [
    { name: 'b', image: '2' },
    { name: 'side', image: '1' },
  ])
})

test('API-11 the configuration decides the order of shared items', () => {
  const schema = deployments
  const live = applied(undefined, containers({ name: 'b' }, { name: 'x' }, { name: 'a' }), 'one', 0, { schema })
  const result = applied(live, containers({ name: 'a' }, { name: 'b' }), 'two', 1, { schema })
  assert.deepEqual(
    containersOf(result).map(({ name }) => name),
    ['x', 'a', 'b'],
  )
})

test('API-11 apply refuses a configuration with managedFields or unknown fields', () => {
  assert.throws(() => applied(undefined, configMap({}, { managedFields: [entry('x', 'Apply', 0, {})] }), 'm', 0), {
    message: 'metadata.managedFields must be nil',
  })
  const config = configMap({})
  assert.throws(
    () => apply({ live: undefined, applied: config, schema: configMaps, manager: 'm', force: false, apiVersion: 'v1', nowMs: 0, unknownFields: ['dato'] }),
    { message: 'failed to create typed patch object (d/c; v1, Kind=ConfigMap): .dato: field not declared in schema' },
  )
})

const withEnvironment = (...values: string[]) =>
  ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'c', namespace: 'd' },
    spec: { template: { spec: { containers: [{ name: 'a', env: values.map((value) => ({ name: 'X', value })) }] } } },
  }) as unknown as Unstructured
const environmentOf = (object: KubeObject) => JSON.stringify(withoutMetadata(object)).match(/"value":"\d"/g)
const withoutMetadata = ({ metadata: _metadata, ...rest }: KubeObject) => rest

test('API-11 list items with equal keys are one field: an apply without the key keeps them, an apply with the key replaces them all', () => {
  const live = update(undefined, withEnvironment('1', '2'), 'writer', 0, deployments)
  const unset = { ...withEnvironment(), metadata: { name: 'c', namespace: 'd', labels: { l: '1' } }, spec: {} } as Unstructured
  assert.deepEqual(environmentOf(applied(live, unset, 'labeler', 1, { schema: deployments })), ['"value":"1"', '"value":"2"'])
  const options = { schema: deployments, force: true }
  const taken = applied(live, withEnvironment('3'), 'applier', 1, options)
  assert.deepEqual(environmentOf(taken), ['"value":"3"'])
  assert.throws(() => applied(live, withEnvironment('3'), 'applier', 1, { schema: deployments }), /conflict with "writer" using apps\/v1/)
  const again = update(taken, withEnvironment('3', '4'), 'writer', 2, deployments)
  assert.deepEqual(
    again.metadata.managedFields?.map(({ manager, fieldsV1 }) => [manager, JSON.stringify(fieldsV1).includes('f:env')]),
    [
      ['applier', false],
      ['writer', true],
    ],
  )
})
