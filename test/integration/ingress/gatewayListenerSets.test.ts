/** ListenerSets against the real API server, with the ingress's own rights: conditions, counts, and which requests their routes answer. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { Frozen } from '#api/machinery/meta'
import { namespaces, services } from '#client/builtIn'
import { gateways, httpRoutes, listenerSets } from '#ingress/gatewayResources'
import { gatewayServiceName } from '#ingress/model/gateway/gatewayService'
import type { Condition, Listener, ParentRef } from '#ingress/model/gateway/kinds'
import { ingressPlace } from '#ingress/place'
import { eventually, type TestCluster } from '../controllers/cluster.ts'
import { get } from './fixture.ts'
import { ingressHost, type RunningIngress, startIngress } from './runningIngress.ts'

const namespace = 'default'
let cluster: TestCluster
let ingress: RunningIngress

const http = (name: string, port = 80): Listener => ({ name, hostname: `${name}.test`, port, protocol: 'HTTP' })

before(async () => {
  ingress = await startIngress()
  cluster = ingress.cluster
  const { client } = cluster
  await client.of(services).create({ metadata: { namespace, name: 'web' }, spec: { ports: [{ port: 80 }] } })
  await client.of(namespaces).create({ metadata: { name: 'team' }, spec: {} })
  const allowedListeners = { namespaces: { from: 'Selector', selector: { matchLabels: { listeners: 'yes' } } } }
  await client.of(gateways).create({ metadata: { namespace, name: 'g' }, spec: { gatewayClassName: 'skiff', allowedListeners, listeners: [http('own')] } })
})

after(() => ingress.close())

async function makeSet(name: string, listeners: Listener[]): Promise<void> {
  await cluster.client.of(listenerSets).create({ metadata: { namespace: 'team', name }, spec: { parentRef: { name: 'g', namespace }, listeners } })
}

async function makeRoute(name: string, parentRefs: ParentRef[]): Promise<void> {
  const rules = [{ matches: [{ path: { value: `/${name}` } }], backendRefs: [{ name: 'web', namespace, port: 80 }] }]
  await cluster.client.of(httpRoutes).create({ metadata: { namespace: 'team', name }, spec: { parentRefs, rules } })
}

const short = (conditions: readonly Frozen<Condition>[] = []) => conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`).join(', ')
const setOf = async (name: string) => (await cluster.client.of(listenerSets).get({ namespace: 'team', name })).status
const attachedSets = async () => (await cluster.client.of(gateways).get({ namespace, name: 'g' })).status?.attachedListenerSets
const isSoon = (wanted: unknown, found: () => Promise<unknown>) =>
  eventually(async () => isDeepStrictEqual(await found(), wanted)).catch(async () => assert.deepEqual(await found(), wanted))

/** A route without a permitted backend answers 500, none 404. */
async function statusOf(hostName: string, path: string, port = 80): Promise<number> {
  const ref = { namespace: ingressPlace.namespace, name: gatewayServiceName(`${namespace}/g`) }
  const { spec } = await cluster.client.of(services).get(ref)
  const target = spec.ports?.find((one) => one.port === port)?.targetPort
  return target === undefined ? 0 : (await get(Number(target), { host: ingressHost, path, headers: { host: hostName } }).catch(() => ({ status: 0 }))).status
}

test('ING-05 a ListenerSet is refused until its namespace is selected, then its listeners are served on the Gateway, also on ports of their own', async () => {
  await makeSet('set', [http('a'), http('b', 8080)])
  await isSoon('Accepted False NotAllowed, Programmed False NotAllowed', async () => short((await setOf('set'))?.conditions))
  await isSoon(0, attachedSets)
  await cluster.client.of(namespaces).patch({ name: 'team' }, 'merge', { metadata: { labels: { listeners: 'yes' } } })
  await isSoon('Accepted True Accepted, Programmed True Programmed', async () => short((await setOf('set'))?.conditions))
  await isSoon(1, attachedSets)
  await makeRoute('all', [{ kind: 'ListenerSet', name: 'set' }])
  await makeRoute('one', [{ kind: 'ListenerSet', name: 'set', sectionName: 'b' }])
  await isSoon(
    [
      ['a', 1],
      ['b', 2],
    ],
    async () => (await setOf('set'))?.listeners?.map(({ name, attachedRoutes }) => [name, attachedRoutes]),
  )
  for (const [hostName, path, port, wanted] of [
    ['a.test', '/all', 80, 500],
    ['a.test', '/one', 80, 404],
    ['b.test', '/all', 8080, 500],
    ['b.test', '/one', 8080, 500],
    ['own.test', '/all', 80, 404],
  ] as const) {
    await isSoon(wanted, () => statusOf(hostName, path, port))
  }
})

test('ING-05 a route of the Gateway is not one of its ListenerSets, and has a status for each of its parents', async () => {
  await makeRoute('both', [
    { name: 'g', namespace, sectionName: 'a' },
    { kind: 'ListenerSet', name: 'set', sectionName: 'a' },
  ])
  const parents = async () => {
    const { status } = await cluster.client.of(httpRoutes).get({ namespace: 'team', name: 'both' })
    return status?.parents?.map(({ parentRef, conditions }) => [parentRef.kind, conditions.find(({ type }) => type === 'Accepted')?.reason])
  }
  await isSoon(
    [
      ['Gateway', 'NoMatchingParent'],
      ['ListenerSet', 'Accepted'],
    ],
    parents,
  )
})

test('ING-05 a younger ListenerSet is refused a place that another one has, until that one is gone, and its routes follow', async () => {
  await makeSet('younger', [http('a')])
  await makeRoute('younger', [{ kind: 'ListenerSet', name: 'younger' }])
  await isSoon('Accepted False ListenersNotValid, Programmed False ListenersNotValid', async () => short((await setOf('younger'))?.conditions))
  const conditions = async () => short((await setOf('younger'))?.listeners?.[0]?.conditions)
  await isSoon(
    'Accepted False HostnameConflict, Programmed False HostnameConflict, ResolvedRefs True ResolvedRefs, Conflicted True HostnameConflict',
    conditions,
  )
  assert.equal(await attachedSets(), 1)
  await cluster.client.of(listenerSets).delete({ namespace: 'team', name: 'set' })
  await isSoon('Accepted True Accepted, Programmed True Programmed', async () => short((await setOf('younger'))?.conditions))
  await isSoon(500, () => statusOf('a.test', '/younger'))
  assert.equal(await statusOf('a.test', '/all'), 404)
})
