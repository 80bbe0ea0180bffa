/** ETC-02: what one API server stores as protobuf, another one that reads it from the store serves alike. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { builtInResources } from '#api/discovery/resources'
import { isProtobuf, protobufMediaType } from '#api/protobuf/envelope'
import { createMemoryStore } from '#store/drivers/memory'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { rawHttp } from '../api/rawHttp.ts'

const store = createMemoryStore({ clock: realClock })
const options = { store, mediaType: protobufMediaType } as const
const servers: TestApiServer[] = []
after(() => Promise.all(servers.map((server) => server.close())))

async function start(): Promise<TestListener> {
  const server = await startTestApiServer(options)
  servers.push(server)
  return server.listen()
}

const root = (apiVersion: string) => (apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`)

async function call(listener: TestListener, method: string, path: string, object?: object): Promise<{ readonly status: number; readonly text: string }> {
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const { status, body } = await rawHttp(listener, { method, path, headers, ...(object ? { body: JSON.stringify(object) } : {}) })
  return { status, text: body.toString() }
}

async function create(listener: TestListener, resource: string, object: { readonly apiVersion: string; readonly metadata: object }): Promise<void> {
  const namespace = (object.metadata as { namespace?: string }).namespace
  const { status, text } = await call(listener, 'POST', `${root(object.apiVersion)}/${namespace ? `namespaces/${namespace}/` : ''}${resource}`, object)
  assert.equal(status, 201, text)
}

const container = {
  name: 'c',
  image: 'i',
  resources: { requests: { cpu: '0.5' } },
  env: [{ name: 'E', value: '' }],
  livenessProbe: { httpGet: { path: '/', port: 'web' } },
}
const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [container], volumes: [{ name: 'v', emptyDir: {} }] } }
const namespaced = (name: string) => ({ name, namespace: 'default' })
const objects = [
  [
    'deployments',
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: namespaced('d'), spec: { replicas: 0, selector: { matchLabels: { a: 'b' } }, template } },
  ],
  ['pods', { apiVersion: 'v1', kind: 'Pod', metadata: namespaced('p'), spec: { ...template.spec, tolerations: [], terminationGracePeriodSeconds: 0 } }],
  ['secrets', { apiVersion: 'v1', kind: 'Secret', metadata: namespaced('s'), data: { k: 'AAEC' } }],
  ['services', { apiVersion: 'v1', kind: 'Service', metadata: namespaced('s'), spec: { ports: [{ port: 80, targetPort: 'x' }] } }],
  ['clusterroles', { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'empty' }, rules: [] }],
  ['endpointslices', { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata: namespaced('e'), addressType: 'IPv4', endpoints: [], ports: [] }],
  ['leases', { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: namespaced('l'), spec: { renewTime: '2026-01-01T01:01:01.000002Z' } }],
  [
    'jobs',
    { apiVersion: 'batch/v1', kind: 'Job', metadata: namespaced('j'), spec: { template: { ...template, spec: { ...template.spec, restartPolicy: 'Never' } } } },
  ],
  [
    'horizontalpodautoscalers',
    {
      apiVersion: 'autoscaling/v1',
      kind: 'HorizontalPodAutoscaler',
      metadata: namespaced('h'),
      spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' } },
    },
  ],
  ['controllerrevisions', { apiVersion: 'apps/v1', kind: 'ControllerRevision', metadata: namespaced('r'), data: { spec: [1, null, ''] }, revision: 3 }],
  [
    'mutatingadmissionpolicybindings',
    { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingAdmissionPolicyBinding', metadata: { name: 'b' }, spec: { policyName: 'p' } },
  ],
  [
    'customresourcedefinitions',
    {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'things.example.com' },
      spec: {
        group: 'example.com',
        names: { plural: 'things', kind: 'Thing' },
        scope: 'Namespaced',
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
            additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.size' }],
          },
        ],
      },
    },
  ],
] as const

test('ETC-02 a second server serves every object as the first does, and finds the definitions of custom resources', async () => {
  const a = await start()
  for (const [resource, object] of objects) await create(a, resource, object)
  const things = '/apis/example.com/v1/namespaces/default/things'
  const thing = { apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name: 't' }, size: 1.5 }
  const made = async (): Promise<boolean> => (await call(a, 'POST', things, thing)).status === 201
  while (!(await made())) await realClock.turn()
  const b = await start()
  let compared = 0
  for (const { group, version, resource, verbs, storage } of builtInResources()) {
    if (!storage || !verbs.includes('list')) continue
    const path = `${root(group ? `${group}/${version}` : version)}/${resource}`
    const itemsOf = async (listener: TestListener) => (JSON.parse((await call(listener, 'GET', path)).text) as { items: { metadata: object }[] }).items
    const [ofA, ofB] = [await itemsOf(a), await itemsOf(b)]
    assert.deepEqual(ofB, ofA, path)
    compared += ofA.length
  }
  assert.ok(compared >= 60, `${compared} objects`)
  assert.equal((await call(b, 'GET', `${things}/t`)).text, (await call(a, 'GET', `${things}/t`)).text)
  for (const [key, prefix] of [
    ['pods/default/p', 'k8s\0'],
    ['services/specs/default/s', 'k8s\0'],
    ['apiextensions.k8s.io/customresourcedefinitions/things.example.com', '{"apiVersion":"apiextensions.k8s.io/v1beta1"'],
    ['example.com/things/default/t', '{"apiVersion":"example.com/v1"'],
    ['apiregistration.k8s.io/apiservices/v1.apps', '{"apiVersion":"apiregistration.k8s.io/v1"'],
  ] as const) {
    const { kvs } = await store.range(`/registry/${key}`)
    assert.equal(Buffer.from(kvs[0]?.value ?? []).toString('latin1', 0, prefix.length), prefix, key)
  }
})

test('ETC-02 an update that changes nothing stores a value of JSON as protobuf', async () => {
  const listener = await start()
  const key = '/registry/configmaps/default/old'
  const object = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { ...namespaced('old'), uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z' },
    data: { k: 'v' },
  }
  await store.transact({ compare: [], success: [{ type: 'put', key, value: Buffer.from(JSON.stringify(object)) }] })
  const path = '/api/v1/namespaces/default/configmaps/old'
  const { text } = await call(listener, 'GET', path)
  assert.equal((await call(listener, 'PUT', path, JSON.parse(text) as object)).status, 200)
  const written = async () => (await store.range(key)).kvs[0]
  const first = await written()
  assert.ok(first && isProtobuf(first.value))
  await call(listener, 'PUT', path, JSON.parse((await call(listener, 'GET', path)).text) as object)
  assert.equal((await written())?.modRevision, first.modRevision)
})
