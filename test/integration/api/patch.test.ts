/** Patches, apply, strict fields, defaults and warnings over the API. */
import assert from 'node:assert/strict'
import { configMaps, deployments, pods } from '#client/builtIn'
import { refused } from '../../support/refused.ts'
import { bothTransports, type Case } from './bothTransports.ts'

const deployment = (namespace: string) => ({
  metadata: { namespace, name: 'web' },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: {
        containers: [
          { name: 'a', image: 'a:1' },
          { name: 'b', image: 'b:1' },
        ],
      },
    },
  },
})

bothTransports({
  async 'API-11 JSON, merge and strategic merge patches change what they say'({ client, namespace }: Case) {
    const ref = { namespace, name: 'web' }
    await client.of(deployments).create(deployment(namespace))
    const strategic = await client.of(deployments).patch(ref, 'strategic', { spec: { template: { spec: { containers: [{ name: 'b', image: 'b:2' }] } } } })
    assert.deepEqual(
      strategic.spec?.template.spec?.containers.map((one) => one.image),
      ['a:1', 'b:2'],
    )
    const merge = await client.of(deployments).patch(ref, 'merge', { metadata: { labels: { x: 'y' } }, spec: { paused: true } })
    assert.deepEqual([merge.metadata.labels, merge.spec?.paused], [{ x: 'y' }, true])
    const json = await client.of(deployments).patch(ref, 'json', [
      { op: 'test', path: '/spec/paused', value: true },
      { op: 'remove', path: '/metadata/labels/x' },
    ])
    assert.equal(json.metadata.labels, undefined)
    const failed = await refused(client.of(deployments).patch(ref, 'json', [{ op: 'test', path: '/spec/paused', value: false }]))
    assert.equal(failed.code, 422)
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/web`
    const unknown = await refused(client.transport.request({ method: 'PATCH', path, body: {}, contentType: 'application/json' }))
    assert.deepEqual([unknown.code, unknown.reason], [415, 'UnsupportedMediaType'])
  },

  async 'API-11 apply tracks owners, refuses conflicts, and takes fields when forced'({ client, namespace }: Case) {
    const ref = { namespace, name: 'm' }
    const config = (data: Record<string, string>) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' }, data })
    const first = await client.of(configMaps).patch(ref, 'apply', config({ a: '1', b: '1' }), { fieldManager: 'one' })
    assert.deepEqual(first.data, { a: '1', b: '1' })
    const again = await client.of(configMaps).patch(ref, 'apply', config({ a: '1', b: '1' }), { fieldManager: 'one' })
    assert.equal(again.metadata.resourceVersion, first.metadata.resourceVersion)
    const conflict = await refused(client.of(configMaps).patch(ref, 'apply', config({ a: '2' }), { fieldManager: 'two' }))
    assert.deepEqual(
      [conflict.code, conflict.message, conflict.details?.causes],
      [
        409,
        'Apply failed with 1 conflict: conflict with "one": .data.a',
        [{ reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.data.a' }],
      ],
    )
    const forced = await client.of(configMaps).patch(ref, 'apply', config({ a: '2' }), { fieldManager: 'two', force: true })
    assert.deepEqual(forced.data, { a: '2', b: '1' })
    const dropped = await client.of(configMaps).patch(ref, 'apply', config({}), { fieldManager: 'one' })
    assert.deepEqual(dropped.data, { a: '2' })
    const managers = dropped.metadata.managedFields?.map((one) => `${one.manager} ${one.operation}`)
    assert.deepEqual(managers?.includes('two Apply'), true)
    const nobody = await refused(client.of(configMaps).patch(ref, 'apply', config({})))
    assert.equal(nobody.message, 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch')
  },

  async 'API-13 unknown fields are dropped, warned about or refused'({ client, namespace }: Case) {
    const path = `/api/v1/namespaces/${namespace}/configmaps`
    const post = (name: string, fieldValidation?: string) =>
      client.transport.request({ method: 'POST', path, query: { fieldValidation }, body: { metadata: { name }, dataa: { a: 'b' } } })
    assert.deepEqual((await post('ignore', 'Ignore')).warnings, [])
    assert.deepEqual((await post('warn')).warnings, ['unknown field "dataa"'])
    const strict = await refused(post('strict', 'Strict'))
    assert.deepEqual(
      [strict.code, strict.message],
      [400, 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dataa"'],
    )
  },

  async 'API-04 an invalid pod is refused with the field that is wrong'({ client, namespace }: Case) {
    const twice = [
      { name: 'c', image: 'x' },
      { name: 'c', image: 'y' },
    ]
    const error = await refused(client.of(pods).create({ metadata: { namespace, name: 'p' }, spec: { containers: twice } }))
    assert.deepEqual(
      [error.code, error.reason, error.details?.causes?.[0]],
      [422, 'Invalid', { reason: 'FieldValueDuplicate', message: 'Duplicate value: "c"', field: 'spec.containers[1].name' }],
    )
  },

  async 'API-05 what a pod leaves out is filled in'({ client, namespace }: Case) {
    const made = await client.of(pods).create({ metadata: { namespace, name: 'p' }, spec: { containers: [{ name: 'c', image: 'nginx' }] } })
    const { restartPolicy, dnsPolicy, terminationGracePeriodSeconds, schedulerName, containers } = made.spec ?? {}
    assert.deepEqual([restartPolicy, dnsPolicy, terminationGracePeriodSeconds, schedulerName], ['Always', 'ClusterFirst', 30, 'default-scheduler'])
    assert.deepEqual([containers?.[0]?.imagePullPolicy, containers?.[0]?.terminationMessagePath], ['Always', '/dev/termination-log'])
  },

  async 'API-17 tables and metadata alone come from the server'({ client, namespace }: Case) {
    await client.of(pods).create({ metadata: { namespace, name: 'p' }, spec: { containers: [{ name: 'c', image: 'nginx' }] } })
    const path = `/api/v1/namespaces/${namespace}/pods`
    const table = (await client.transport.request({ method: 'GET', path, accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' })).body as {
      kind: string
      columnDefinitions: { name: string; priority: number }[]
      rows: { cells: unknown[]; object: { kind: string } }[]
    }
    const names = table.columnDefinitions.filter((one) => one.priority === 0).map((one) => one.name)
    assert.deepEqual([table.kind, names], ['Table', ['Name', 'Ready', 'Status', 'Restarts', 'Age']])
    assert.deepEqual([table.rows[0]?.cells.slice(0, 3), table.rows[0]?.object.kind], [['p', '0/1', 'Pending'], 'PartialObjectMetadata'])
    const accept = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
    const partial = (await client.transport.request({ method: 'GET', path, accept })).body as { kind: string; items: object[] }
    assert.deepEqual([partial.kind, Object.keys(partial.items[0] ?? {})], ['PartialObjectMetadataList', ['kind', 'apiVersion', 'metadata']])
  },
})
