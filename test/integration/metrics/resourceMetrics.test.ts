/** metrics.k8s.io as a client sees it: objects, selectors, forms, documents, refusals. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { decodeProtobuf } from '#api/protobuf/envelope'
import { namespaces } from '#client/builtIn'
import { nodeMetricsKind, podMetricsKind } from '#metrics/kinds'
import { UsageStore } from '#metrics/usageStore'
import { startTestApiServer } from '#testing/apiServer'
import { bothTransports, type Case } from '../api/bothTransports.ts'
import { rawHttp } from '../api/rawHttp.ts'
import { groupPath, node, runningPod, sampled, withMetrics } from './support.ts'

const store = new UsageStore()
const ofApp = ['case/app', 'case/other'] as const

/** Two nodes; on the first the pods app with two containers and other with one. */
async function twoNodes({ client }: Pick<Case, 'client'>): Promise<void> {
  await node(client, 'n1', { zone: 'a' })
  await node(client, 'n2')
  await runningPod(client, { namespace: 'case', name: 'other', nodeName: 'n1' }, ['main'])
  await runningPod(client, { namespace: 'case', name: 'app', nodeName: 'n1', labels: { app: 'web' } }, ['main', 'sidecar'])
  sampled(store, 'n1', { [ofApp[0]]: ['main', 'sidecar'], [ofApp[1]]: ['main'] })
  sampled(store, 'n2', {})
}

interface Items {
  readonly kind: string
  readonly metadata: object
  readonly items: readonly { readonly metadata: { readonly name: string } }[]
}

const get = async ({ client }: Case, path: string, query: Record<string, string> = {}, accept?: string) =>
  (await client.transport.request({ method: 'GET', path: `${groupPath}${path}`, query, ...(accept ? { accept } : {}) })).body
const namesIn = async (one: Case, path: string, query: Record<string, string> = {}) =>
  ((await get(one, path, query)) as Items).items.map(({ metadata }) => metadata.name)
const usage = { cpu: '250m', memory: '20Mi' }
const times = { timestamp: '2026-01-01T00:00:15Z', window: '15s' }

bothTransports(
  {
    async 'AUT-02 a node and a pod have what metrics-server says of them'(one) {
      await twoNodes(one)
      const { metadata, ...nodeRest } = (await get(one, '/nodes/n1')) as { metadata: Record<string, unknown> }
      assert.deepEqual(nodeRest, { kind: 'NodeMetrics', apiVersion: 'metrics.k8s.io/v1beta1', ...times, usage: { cpu: '500m', memory: '40Mi' } })
      assert.deepEqual([metadata.name, (metadata.labels as Record<string, string>).zone, metadata.resourceVersion], ['n1', 'a', undefined])
      const { metadata: ofPod, ...podRest } = (await get(one, '/namespaces/case/pods/app')) as { metadata: Record<string, unknown> }
      const containers = ['main', 'sidecar'].map((name) => ({ name, usage }))
      assert.deepEqual(podRest, { kind: 'PodMetrics', apiVersion: 'metrics.k8s.io/v1beta1', ...times, containers })
      assert.deepEqual([ofPod.name, ofPod.namespace, ofPod.labels, typeof ofPod.creationTimestamp], ['app', 'case', { app: 'web' }, 'string'])
    },
    async 'AUT-02 lists are sorted, and selected by namespace, labels and fields'(one) {
      await twoNodes(one)
      assert.deepEqual(await namesIn(one, '/nodes'), ['n1', 'n2'])
      assert.deepEqual(await namesIn(one, '/nodes', { labelSelector: 'zone=a' }), ['n1'])
      assert.deepEqual(await namesIn(one, '/pods'), ['app', 'other'])
      assert.deepEqual(await namesIn(one, '/namespaces/case/pods', { labelSelector: 'app!=web' }), ['other'])
      assert.deepEqual(await namesIn(one, '/namespaces/default/pods'), [])
      assert.deepEqual(await namesIn(one, '/pods', { fieldSelector: 'metadata.name=app,metadata.namespace=case' }), ['app'])
      const list = (await get(one, '/namespaces/case/pods')) as Items
      assert.deepEqual([list.kind, list.metadata, Object.keys(list.items[0] ?? {})], ['PodMetricsList', {}, ['metadata', 'timestamp', 'window', 'containers']])
    },
    async 'AUT-02 pods that do not run, or were not measured on their own node, have no metrics'(one) {
      await twoNodes(one)
      await runningPod(one.client, { namespace: 'case', name: 'new', nodeName: 'n2' }, ['main'])
      // n1 claims to run a pod of n2.
      sampled(store, 'n1', { [ofApp[0]]: ['main', 'sidecar'], 'case/new': ['main'] })
      assert.deepEqual(await namesIn(one, '/pods'), ['app'])
      await assert.rejects(get(one, '/namespaces/case/pods/new'), { code: 404, message: 'podmetrics.metrics.k8s.io "case/new" not found' })
      await assert.rejects(get(one, '/namespaces/case/pods/none'), { code: 404, message: 'pods "none" not found' })
      await assert.rejects(get(one, '/nodes/none'), { code: 404, message: 'node "none" not found' })
      await node(one.client, 'n3')
      await assert.rejects(get(one, '/nodes/n3'), { code: 404, message: 'nodemetrics.metrics.k8s.io "n3" not found' })
    },
    async 'AUT-02 a watch, a write and an unknown field are refused as metrics-server refuses them'(one) {
      await twoNodes(one)
      const watch = 'watch is not supported on resources of kind "pods.metrics.k8s.io"'
      await assert.rejects(get(one, '/pods', { watch: 'true' }), { code: 405, reason: 'MethodNotAllowed', message: watch })
      const known = '"spec.nodeName" is not a known field selector: only "metadata.name", "metadata.namespace"'
      await assert.rejects(get(one, '/pods', { fieldSelector: 'spec.nodeName=n1' }), { code: 400, message: known })
      for (const [method, path] of [
        ['POST', '/nodes'],
        ['PUT', '/nodes/n1'],
        ['PATCH', '/nodes/n1'],
        ['DELETE', '/nodes/n1'],
        ['DELETE', '/nodes'],
      ] as const) {
        await assert.rejects(one.client.transport.request({ method, path: `${groupPath}${path}`, body: {} }), { code: 405 }, `${method} ${path}`)
      }
      await assert.rejects(get(one, '/nodes/n1/status'), { code: 404 })
      await assert.rejects(get(one, '/nodemetrics'), { code: 404 })
    },
    async 'AUT-02 a table has the columns of metrics-server, with the sum of a pod’s containers'(one) {
      await twoNodes(one)
      const accept = 'application/json;as=Table;g=meta.k8s.io;v=v1'
      type Table = { columnDefinitions: { name: string; format: string }[]; rows: { cells: unknown[]; object: { kind: string } }[] }
      for (const path of ['/namespaces/case/pods', '/namespaces/case/pods/app']) {
        const { columnDefinitions, rows } = (await get(one, path, {}, accept)) as Table
        assert.deepEqual(
          columnDefinitions.map(({ name, format }) => [name, format]),
          [
            ['Name', 'name'],
            ['cpu', 'quantity'],
            ['memory', 'quantity'],
            ['Window', 'duration'],
          ],
        )
        assert.deepEqual([rows[0]?.cells, rows[0]?.object.kind], [['app', '500m', '40Mi', '15s'], 'PartialObjectMetadata'])
      }
      const partial = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
      const list = (await get(one, '/nodes', {}, partial)) as Items
      assert.deepEqual(
        [list.kind, list.items.map((item) => Object.keys(item))],
        [
          'PartialObjectMetadataList',
          [
            ['kind', 'apiVersion', 'metadata'],
            ['kind', 'apiVersion', 'metadata'],
          ],
        ],
      )
    },
    async 'AUT-02 discovery and OpenAPI describe the group'(one) {
      const { body: legacy } = await one.client.transport.request({ method: 'GET', path: groupPath })
      const resources = (legacy as { resources: { name: string; kind: string; namespaced: boolean; verbs: string[] }[] }).resources
      assert.deepEqual(
        resources.map(({ name, kind, namespaced, verbs }) => [name, kind, namespaced, verbs.join(' ')]),
        [
          ['nodes', 'NodeMetrics', false, 'get list'],
          ['pods', 'PodMetrics', true, 'get list'],
        ],
      )
      const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
      const { body: all } = await one.client.transport.request({ method: 'GET', path: '/apis', accept })
      const groups = (all as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name)
      assert.equal(groups.at(-1), 'metrics.k8s.io', 'the group of the lowest priority')
      const { body: v3 } = await one.client.transport.request({ method: 'GET', path: '/openapi/v3/apis/metrics.k8s.io/v1beta1' })
      const { schemas } = (v3 as { components: { schemas: Record<string, { description: string; properties: Record<string, unknown> }> } }).components
      const name = 'io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics'
      assert.deepEqual(Object.keys(schemas[name]?.properties ?? {}), ['apiVersion', 'kind', 'metadata', 'timestamp', 'window', 'containers'])
      assert.match(schemas[name]?.description ?? '', /containers of a pod/)
      assert.ok(schemas['io.k8s.metrics.pkg.apis.metrics.v1beta1.ContainerMetrics'])
      const { body: v2 } = await one.client.transport.request({ method: 'GET', path: '/openapi/v2' })
      const definitions = (v2 as { definitions: Record<string, { 'x-kubernetes-group-version-kind'?: object[] }> }).definitions
      assert.deepEqual(definitions[name]?.['x-kubernetes-group-version-kind'], [{ group: 'metrics.k8s.io', kind: 'PodMetrics', version: 'v1beta1' }])
    },
  },
  withMetrics(store),
)

test('AUT-02 lists of thousands and single objects have the same content in every encoding', async (t) => {
  const api = await startTestApiServer(withMetrics(store))
  t.after(() => api.close())
  const { client } = api
  await client.of(namespaces).create({ metadata: { name: 'case' }, spec: {} })
  await twoNodes({ client })
  const listener = await api.listen()
  const read = async (path: string, accept: string) => (await rawHttp(listener, { path: `${groupPath}${path}`, headers: { accept } })).body
  const schemaOf = (_apiVersion: string, kind: string) =>
    ({ NodeMetrics: nodeMetricsKind.schema, PodMetrics: podMetricsKind.schema, PodMetricsList: podMetricsKind.listSchema })[kind]
  const protobuf = 'application/vnd.kubernetes.protobuf'
  for (const path of ['/namespaces/case/pods', '/namespaces/case/pods/app', '/nodes/n1']) {
    const json = JSON.parse(String(await read(path, 'application/json')))
    assert.deepEqual(withoutTime(decodeProtobuf(await read(path, protobuf), schemaOf)), withoutTime(json), path)
  }
  const names = Array.from({ length: 501 }, (_, index) => `p-${String(index).padStart(3, '0')}`)
  for (const name of names) await runningPod(client, { namespace: 'case', name, nodeName: 'n2' }, ['main'])
  sampled(store, 'n2', Object.fromEntries(names.map((name) => [`case/${name}`, ['main']])))
  const long = JSON.parse(String(await read('/pods', 'application/json')))
  assert.deepEqual([long.kind, long.items.length, long.items[502].metadata.name], ['PodMetricsList', 503, 'p-500'])
  assert.deepEqual(withoutTime(decodeProtobuf(await read('/pods', protobuf), schemaOf)), withoutTime(long))
})

/** Computed objects are created for each answer, and two answers may be of different seconds. */
function withoutTime(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (name, member) => (name === 'creationTimestamp' ? typeof member : member)))
}
