/** Dry runs of every verb and subresource: answered like the real request, without a change in the store. */
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { configMaps, deployments, nodes, pods, serviceAccounts } from '#client/builtIn'
import type { ApiRequest } from '#client/transport'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'

let api: TestApiServer

const core = '/api/v1/namespaces/default'
const apps = '/apis/apps/v1/namespaces/default'
const policy = '/apis/policy/v1/namespaces/default'
const metadata = (name: string) => ({ namespace: 'default', name, labels: { app: name } })
const podSpec = { containers: [{ name: 'c', image: 'i' }] }
const pod = (name: string) => ({ apiVersion: 'v1', kind: 'Pod', metadata: metadata(name), spec: podSpec })
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: metadata('web'),
  spec: { replicas: 1, selector: { matchLabels: { app: 'web' } }, template: { metadata: { labels: { app: 'web' } }, spec: podSpec } },
}
const budget = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: metadata('bound'),
  spec: { minAvailable: 0, selector: { matchLabels: { app: 'bound' } } },
}
const eviction = (deleteOptions: object = {}) => ({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'bound' }, deleteOptions })

before(async () => {
  api = await startTestApiServer()
  const { client } = api
  await client.of(configMaps).create({ metadata: metadata('a'), data: { k: 'v' } })
  await client.of(nodes).create({ metadata: { name: 'n' }, spec: {} })
  await client.of(serviceAccounts).create({ metadata: metadata('robot') })
  await client.of(deployments).create(deployment)
  for (const name of ['free', 'bound']) await client.of(pods).create(pod(name))
  await send({ method: 'POST', path: `${core}/bindings`, body: { metadata: { name: 'bound' }, target: { kind: 'Node', name: 'n' } } })
  const ready = { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } }
  await send({ method: 'PATCH', path: `${core}/pods/bound/status`, body: ready, contentType: 'application/merge-patch+json' })
  await send({ method: 'POST', path: `${policy}/poddisruptionbudgets`, body: budget })
  const allowed = { status: { observedGeneration: 1, disruptionsAllowed: 1, currentHealthy: 1, desiredHealthy: 0, expectedPods: 1 } }
  await send({ method: 'PATCH', path: `${policy}/poddisruptionbudgets/bound/status`, body: allowed, contentType: 'application/merge-patch+json' })
})
after(() => api.close())

// biome-ignore lint/suspicious/noExplicitAny: answers of many kinds
async function send(request: ApiRequest): Promise<any> {
  return (await api.client.transport.request(request)).body
}

/** All that is stored, with its revisions. */
async function everything(): Promise<unknown> {
  const { kvs } = await api.store.range('/registry/', '/registry0')
  return kvs.map(({ key, value, modRevision }) => [key, modRevision, Buffer.from(value).toString()])
}

const patch = (type: string, path: string, body: unknown, query: Record<string, string> = {}): ApiRequest => ({
  method: 'PATCH',
  path,
  body,
  query,
  contentType: type === 'apply' ? 'application/apply-patch+yaml' : `application/${type}-patch+json`,
})

const service = { apiVersion: 'v1', kind: 'Service', metadata: metadata('s'), spec: { type: 'NodePort', ports: [{ port: 80, nodePort: 30_080 }] } }
const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { k: 'applied' } }

interface Case {
  readonly name: string
  readonly request: ApiRequest
  // biome-ignore lint/suspicious/noExplicitAny: see send
  shows(answer: any): unknown
  readonly want: unknown
}

const cases: readonly Case[] = [
  { name: 'create', request: { method: 'POST', path: `${core}/configmaps`, body: { metadata: { name: 'b' } } }, shows: (a) => a.metadata.name, want: 'b' },
  {
    name: 'create with generateName',
    request: { method: 'POST', path: `${core}/configmaps`, body: { metadata: { generateName: 'g-' } } },
    shows: (a) => /^g-.{5}$/.test(a.metadata.name),
    want: true,
  },
  {
    name: 'create a service with a node port',
    request: { method: 'POST', path: `${core}/services`, body: service },
    shows: (a) => a.spec.ports[0].nodePort,
    want: 30_080,
  },
  {
    name: 'create a namespace',
    request: { method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: 'dry' } } },
    shows: (a) => a.status.phase,
    want: 'Active',
  },
  {
    name: 'update',
    request: { method: 'PUT', path: `${core}/configmaps/a`, body: { metadata: { name: 'a' }, data: { k: 'updated' } } },
    shows: (a) => a.data,
    want: { k: 'updated' },
  },
  {
    name: 'update that creates',
    request: { method: 'PUT', path: '/apis/coordination.k8s.io/v1/namespaces/default/leases/l', body: { metadata: { name: 'l' } } },
    shows: (a) => a.metadata.name,
    want: 'l',
  },
  {
    name: 'JSON patch',
    request: patch('json', `${core}/configmaps/a`, [{ op: 'add', path: '/data/k', value: 'json' }]),
    shows: (a) => a.data,
    want: { k: 'json' },
  },
  { name: 'merge patch', request: patch('merge', `${core}/configmaps/a`, { data: { k: 'merge' } }), shows: (a) => a.data, want: { k: 'merge' } },
  {
    name: 'strategic merge patch',
    request: patch('strategic-merge', `${core}/configmaps/a`, { data: { k: 'strategic' } }),
    shows: (a) => a.data,
    want: { k: 'strategic' },
  },
  {
    name: 'apply',
    request: patch('apply', `${core}/configmaps/a`, applied, { fieldManager: 'm', force: 'true' }),
    shows: (a) => a.data,
    want: { k: 'applied' },
  },
  {
    name: 'apply that creates',
    request: patch('apply', `${core}/configmaps/c`, { ...applied, metadata: { name: 'c' } }, { fieldManager: 'm' }),
    shows: (a) => a.metadata.name,
    want: 'c',
  },
  {
    name: 'patch that ends the last finalizer',
    request: patch('merge', `${core}/configmaps/a`, { metadata: { finalizers: ['x/y'] } }),
    shows: (a) => a.metadata.finalizers,
    want: ['x/y'],
  },
  { name: 'status', request: patch('merge', `${core}/pods/bound/status`, { status: { message: 'dry' } }), shows: (a) => a.status.message, want: 'dry' },
  {
    name: 'scale by update',
    request: { method: 'PUT', path: `${apps}/deployments/web/scale`, body: { metadata: { name: 'web' }, spec: { replicas: 7 } } },
    shows: (a) => a.spec.replicas,
    want: 7,
  },
  { name: 'scale by patch', request: patch('merge', `${apps}/deployments/web/scale`, { spec: { replicas: 8 } }), shows: (a) => a.spec.replicas, want: 8 },
  {
    name: 'scale by apply',
    request: patch(
      'apply',
      `${apps}/deployments/web/scale`,
      { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'web' }, spec: { replicas: 9 } },
      { fieldManager: 'm', force: 'true' },
    ),
    shows: (a) => a.spec.replicas,
    want: 9,
  },
  {
    name: 'ephemeral containers',
    request: patch('strategic-merge', `${core}/pods/bound/ephemeralcontainers`, { spec: { ephemeralContainers: [{ name: 'e', image: 'i' }] } }),
    shows: (a) => a.spec.ephemeralContainers.length,
    want: 1,
  },
  { name: 'resize', request: patch('merge', `${core}/pods/bound/resize`, { metadata: { annotations: {} } }), shows: (a) => a.kind, want: 'Pod' },
  {
    name: 'binding',
    request: { method: 'POST', path: `${core}/pods/free/binding`, body: { metadata: { name: 'free' }, target: { kind: 'Node', name: 'n' } } },
    shows: (a) => a.status,
    want: 'Success',
  },
  {
    name: 'binding by the collection',
    request: { method: 'POST', path: `${core}/bindings`, body: { metadata: { name: 'free' }, target: { kind: 'Node', name: 'n' } } },
    shows: (a) => a.status,
    want: 'Success',
  },
  { name: 'eviction', request: { method: 'POST', path: `${core}/pods/bound/eviction`, body: eviction() }, shows: (a) => a.status, want: 'Success' },
  {
    name: 'finalize',
    request: {
      method: 'PUT',
      path: '/api/v1/namespaces/default/finalize',
      body: { metadata: { name: 'default' }, spec: { finalizers: ['kubernetes', 'x/y'] } },
    },
    shows: (a) => a.spec.finalizers,
    want: ['kubernetes', 'x/y'],
  },
  { name: 'delete', request: { method: 'DELETE', path: `${core}/configmaps/a` }, shows: (a) => a.status, want: 'Success' },
  {
    name: 'delete in the foreground',
    request: { method: 'DELETE', path: `${apps}/deployments/web`, query: { propagationPolicy: 'Foreground' } },
    shows: (a) => a.metadata.finalizers,
    want: ['foregroundDeletion'],
  },
  {
    name: 'delete that takes its time',
    request: { method: 'DELETE', path: `${core}/pods/bound` },
    shows: (a) => a.metadata.deletionGracePeriodSeconds,
    want: 30,
  },
  { name: 'delete a namespace', request: { method: 'DELETE', path: '/api/v1/namespaces/kube-public' }, shows: (a) => a.status.phase, want: 'Terminating' },
  { name: 'deletecollection', request: { method: 'DELETE', path: `${core}/configmaps` }, shows: (a) => a.items.length > 0, want: true },
]
for (const { name, request, shows, want } of cases) {
  test(`API-12 a dry run leaves no trace: ${name}`, async () => {
    const old = await everything()
    assert.deepEqual(shows(await send({ ...request, query: { ...request.query, dryRun: 'All' } })), want)
    assert.deepEqual(await everything(), old)
  })
}

test('API-12 what a dry run would have taken is free still, and options in the body count too', async () => {
  const old = await everything()
  const options = { apiVersion: 'v1', kind: 'DeleteOptions', dryRun: ['All'] }
  assert.equal((await send({ method: 'DELETE', path: `${core}/configmaps/a`, body: options })).status, 'Success')
  assert.ok((await send({ method: 'DELETE', path: `${core}/configmaps`, body: options })).items.length > 0)
  assert.equal((await send({ method: 'POST', path: `${core}/pods/bound/eviction`, body: eviction({ dryRun: ['All'] }) })).status, 'Success')
  assert.deepEqual(await everything(), old)
  assert.equal((await send({ method: 'POST', path: `${core}/services`, body: service })).spec.ports[0].nodePort, 30_080)
  await assert.rejects(send({ method: 'DELETE', path: `${core}/configmaps/a`, query: { dryRun: 'Some' } }), { code: 422 })
})
