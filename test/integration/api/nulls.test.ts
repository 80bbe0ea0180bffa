/** Null on the wire: what Go never leaves out is null in every JSON answer, and nulls that clients send back are understood. */
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { rawHttp, rawLines } from './rawHttp.ts'

let api: TestApiServer
let listener: TestListener
before(async () => {
  api = await startTestApiServer()
  listener = await api.listen()
})
after(() => api.close())

async function send<T = unknown>(method: string, path: string, body?: unknown, type = 'application/json'): Promise<T> {
  const headers = { 'content-type': type, accept: 'application/json' }
  const answer = await rawHttp(listener, { method, path, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  const value = JSON.parse(answer.body.toString()) as T
  assert.ok(answer.status < 300, JSON.stringify(value))
  return value
}

const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles'
const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

test('API-16 an absent list that Go never omits is null in what a create, a get, a list and a patch answer', async () => {
  const role = { metadata: { name: 'aggregated' }, aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] } }
  const made = await send<{ rules?: unknown; metadata: { managedFields: { fieldsV1: Record<string, unknown> }[] } }>('POST', roles, role)
  assert.equal(made.rules, null)
  assert.deepEqual(Object.keys(made.metadata.managedFields[0]?.fieldsV1 ?? {}), ['f:aggregationRule'], 'a nil that was nil before is nobody’s')
  assert.deepEqual(await send('GET', `${roles}/aggregated`), made)
  const list = await send<{ items: { metadata: { name: string }; rules?: unknown }[] }>('GET', roles)
  assert.equal(list.items.find(({ metadata }) => metadata.name === 'aggregated')?.rules, null)
  const labelled = await send<{ rules?: unknown }>('PATCH', `${roles}/aggregated`, { metadata: { labels: { x: 'y' } } }, 'application/merge-patch+json')
  assert.equal(labelled.rules, null)
  // It is there to be replaced, as upstream's.
  const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }]
  const patch = [
    { op: 'test', path: '/rules', value: null },
    { op: 'replace', path: '/rules', value: rules },
  ]
  assert.deepEqual((await send<{ rules?: unknown }>('PATCH', `${roles}/aggregated`, patch, 'application/json-patch+json')).rules, rules)
})

test('API-16 an update with the nulls of an answer is no change', async () => {
  const slice = { metadata: { name: 'empty' }, addressType: 'IPv4', endpoints: [], ports: [] }
  const made = await send<{ endpoints?: unknown; ports?: unknown; metadata: { resourceVersion: string } }>('POST', slices, slice)
  assert.deepEqual([made.endpoints, made.ports], [null, null])
  const put = await send<typeof made>('PUT', `${slices}/empty`, made)
  assert.deepEqual(put, made)
})

test('API-16 watches show the same nulls', async () => {
  const { metadata } = await send<{ metadata: { resourceVersion: string } }>('GET', slices)
  await send('POST', slices, { metadata: { name: 'watched' }, addressType: 'IPv4', ports: [{ port: 80 }] })
  const path = `${slices}?watch=true&resourceVersion=${metadata.resourceVersion}`
  const [line = ''] = await rawLines(listener, { path, headers: { accept: 'application/json' } }, 1)
  const event = JSON.parse(line) as { object: { endpoints?: unknown } }
  assert.equal(event.object.endpoints, null)
})

test('API-16 a custom resource definition that was just made has no conditions yet: null', async () => {
  const made = await send<{ status: Record<string, unknown> }>('POST', `${definitions}?dryRun=All`, {
    metadata: { name: 'things.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'things', kind: 'Thing' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  })
  assert.equal(made.status.conditions, null)
})

test('API-16 who sets a condition owns the times it left out', async () => {
  await send('POST', '/api/v1/namespaces/default/pods', { metadata: { name: 'conditioned' }, spec: { containers: [{ name: 'c', image: 'i' }] } })
  const status = { status: { conditions: [{ type: 'example.com/Known', status: 'True' }] } }
  type Pod = { status: { conditions: unknown[] }; metadata: { managedFields: { subresource?: string; fieldsV1: Record<string, unknown> }[] } }
  const pod = await send<Pod>('PATCH', '/api/v1/namespaces/default/pods/conditioned/status', status, 'application/strategic-merge-patch+json')
  assert.deepEqual(pod.status.conditions, [{ type: 'example.com/Known', status: 'True', lastProbeTime: null, lastTransitionTime: null }])
  const owned = pod.metadata.managedFields.find(({ subresource }) => subresource === 'status')?.fieldsV1
  assert.deepEqual(owned?.['f:status'], {
    'f:conditions': { '.': {}, 'k:{"type":"example.com/Known"}': { '.': {}, 'f:lastProbeTime': {}, 'f:lastTransitionTime': {}, 'f:status': {}, 'f:type': {} } },
  })
})

test('API-11 API-16 nulls that are applied are owned, and lay nothing over what others have', async () => {
  type Map = {
    data?: Record<string, string>
    metadata: { labels?: Record<string, string>; creationTimestamp: string; managedFields: { manager: string; fieldsV1: object }[] }
  }
  const path = '/api/v1/namespaces/default/configmaps/applied'
  const applying = (manager: string, object: object) =>
    send<Map>('PATCH', `${path}?fieldManager=${manager}&force=true`, { apiVersion: 'v1', kind: 'ConfigMap', ...object }, 'application/apply-patch+yaml')
  await applying('a', { metadata: { name: 'applied', labels: { x: 'y' } }, data: { k: 'v' } })
  const nulls = { metadata: { name: 'applied', labels: null, annotations: { n: null }, creationTimestamp: null, uid: null }, data: null }
  const { data, metadata } = await applying('b', nulls)
  // A map of which nothing is said keeps what it has; a null text is an empty one.
  assert.deepEqual([data, metadata.labels, metadata], [{ k: 'v' }, { x: 'y' }, { ...metadata, annotations: { n: '' } }])
  assert.ok(metadata.creationTimestamp)
  assert.deepEqual(metadata.managedFields.find(({ manager }) => manager === 'b')?.fieldsV1, {
    'f:data': {},
    'f:metadata': { 'f:annotations': { 'f:n': {} }, 'f:labels': {} },
  })
})

test('API-11 a null that is applied to a field with a default gets the default, owned by who applied it', async () => {
  const path = '/apis/apps/v1/namespaces/default/deployments/applied?fieldManager=a'
  const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
  const object = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'applied' },
    spec: { replicas: null, selector: { matchLabels: { a: 'b' } }, strategy: null, template },
  }
  type Deployment = { spec: { replicas: number; strategy: { type: string } }; metadata: { managedFields: { fieldsV1: { 'f:spec': object } }[] } }
  const { spec, metadata } = await send<Deployment>('PATCH', path, object, 'application/apply-patch+yaml')
  assert.deepEqual([spec.replicas, spec.strategy.type], [1, 'RollingUpdate'])
  assert.deepEqual(Object.keys(metadata.managedFields[0]?.fieldsV1['f:spec'] ?? {}).sort(), ['f:replicas', 'f:selector', 'f:strategy', 'f:template'])
})
