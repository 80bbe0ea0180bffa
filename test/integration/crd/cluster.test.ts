/** What the rest of the cluster makes of custom resources: roles, admission, quota, garbage collection, the end of a namespace. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { UserInfo } from '#apiserver/core/request'
import { createSecurity } from '#apiserver/security'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { createControllerManager } from '#controllers/framework/manager'
import { controllers } from '#controllers/index'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { refused } from '../../support/refused.ts'
import { controllerClients, testServiceAccountKey } from '../controllers/cluster.ts'
import { type Any, definition, establish, group, object, type Plain, plain, until, version } from './support.ts'

const random = seededRandom(11)
const alice: UserInfo = { name: 'alice', groups: ['system:authenticated'] }
let api: TestApiServer
let client: Plain
const stop = new AbortController()
let running: Promise<unknown> = Promise.resolve()

before(async () => {
  api = await startTestApiServer({
    deps: ({ reader }) => {
      const { authorizers, connect, postStartHooks, admission } = createSecurity({
        reader,
        clock: realClock,
        random,
        serviceAccountKey: testServiceAccountKey(),
      })
      return { authorizers, connect, postStartHooks, admission }
    },
  })
  client = plain(api.client)
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  // Controllers look for new resources every half minute: these are there before they look.
  await establish(api.client, definition('toys', 'Toy', [version('v1', open)]))
  await establish(api.client, definition('boxes', 'Box', [version('v1', open)], { scope: 'Cluster' }))
  const manager = createControllerManager(
    {
      client: api.clientAs({ name: 'system:kube-controller-manager', groups: ['system:authenticated'] }),
      clientFor: controllerClients(api),
      clock: realClock,
      random,
      log: noLog,
      metrics: noMetrics,
    },
    controllers,
    {},
  )
  running = manager.run(stop.signal)
})
after(async () => {
  stop.abort(new Error('the test is over'))
  await running
  await api.close()
})

const toys = (namespace: string, name = '') => `/apis/${group}/v1/namespaces/${namespace}/toys${name && `/${name}`}`
const boxes = `/apis/${group}/v1/boxes`
const toy = (name: string, metadata: object = {}): Any => ({ ...object('Toy', name, {}), metadata: { name, ...metadata } })
const ownerOf = ({ apiVersion, kind, metadata }: Any) => [{ apiVersion, kind, name: metadata.name, uid: metadata.uid }]

test('CRD-01 roles grant custom resources like any other', async () => {
  const mine = plain(api.clientAs(alice))
  const denied = await refused(mine.request('GET', toys('default')))
  assert.deepEqual(
    [denied.code, denied.message],
    [403, 'toys.example.com is forbidden: User "alice" cannot list resource "toys" in API group "example.com" in the namespace "default"'],
  )
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default'
  await client.request('POST', `${rbac}/roles`, { metadata: { name: 'toys' }, rules: [{ apiGroups: [group], resources: ['toys'], verbs: ['list', 'create'] }] })
  await client.request('POST', `${rbac}/rolebindings`, {
    metadata: { name: 'toys' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'toys' },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'alice' }],
  })
  assert.equal((await mine.request('POST', toys('default'), toy('granted'))).metadata.name, 'granted')
  assert.equal((await refused(mine.request('DELETE', toys('default', 'granted')))).code, 403)
})

test('CRD-01 admission sees custom resources: none is made in a namespace that is not there', async () => {
  const error = await refused(client.request('POST', toys('nowhere'), toy('lost')))
  assert.deepEqual([error.code, error.message], [404, 'namespaces "nowhere" not found'])
})

test('CRD-06 custom resources own, and are owned', async () => {
  const box = await client.request('POST', boxes, object('Box', 'owner', {}))
  const owned = await client.request('POST', toys('default'), toy('owned', { ownerReferences: ownerOf(box) }))
  await client.request('POST', '/api/v1/namespaces/default/configmaps', { metadata: { name: 'owned-by-toy', ownerReferences: ownerOf(owned) } })
  await client.request('DELETE', `${boxes}/owner`)
  await until('the collection of the toy', () => client.isGone(toys('default', 'owned')), 20_000)
  await until('the collection of the map', () => client.isGone('/api/v1/namespaces/default/configmaps/owned-by-toy'), 20_000)
})

test('CRD-06 a deletion in the foreground waits for custom resources', async () => {
  const box = await client.request('POST', boxes, object('Box', 'front', {}))
  const owners = ownerOf(box).map((owner) => ({ ...owner, blockOwnerDeletion: true }))
  await client.request('POST', toys('default'), toy('held', { ownerReferences: owners, finalizers: ['example.com/hold'] }))
  await client.request('DELETE', `${boxes}/front`, { propagationPolicy: 'Foreground' })
  const held = await until(
    'the deletion of the dependent',
    async () => {
      const found = await client.request('GET', toys('default', 'held'))
      return found.metadata.deletionTimestamp && found
    },
    20_000,
  )
  assert.deepEqual((await client.request('GET', `${boxes}/front`)).metadata.finalizers, ['foregroundDeletion'])
  await client.request('PUT', toys('default', 'held'), { ...held, metadata: { ...held.metadata, finalizers: [] } })
  await until('the end of the owner', () => client.isGone(`${boxes}/front`), 20_000)
})

test('CRD-01 a namespace that ends takes its custom resources along', async () => {
  await client.request('POST', '/api/v1/namespaces', { metadata: { name: 'brief' } })
  await client.request('POST', toys('brief'), toy('gone'))
  await client.request('DELETE', '/api/v1/namespaces/brief')
  await until('the end of the namespace', () => client.isGone('/api/v1/namespaces/brief'), 20_000)
  assert.deepEqual(
    (await client.request('GET', `/apis/${group}/v1/toys`)).items.filter((item: Any) => item.metadata.namespace === 'brief'),
    [],
  )
})

test('CRD-01 deletecollection takes what a selector names', async () => {
  for (const [name, color] of [
    ['r1', 'red'],
    ['r2', 'red'],
    ['b1', 'blue'],
  ] as const)
    await client.request('POST', toys('default'), toy(name, { labels: { color } }))
  const deleted = await client.request('DELETE', `${toys('default')}?labelSelector=color%3Dred`)
  assert.deepEqual([deleted.kind, deleted.items.map((item: Any) => item.metadata.name)], ['ToyList', ['r1', 'r2']])
  assert.equal(await client.isGone(toys('default', 'r1')), true)
  assert.equal(await client.isGone(toys('default', 'b1')), false)
})
