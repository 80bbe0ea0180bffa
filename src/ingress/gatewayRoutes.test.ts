import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '#api/machinery/meta'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { realClock as clock } from '#testing/realClock'
import { createGatewayRoutes, type GatewayRoutes } from './gatewayRoutes.ts'

type Objects = Readonly<Record<string, readonly object[]>>

const metadata = (name: string) => ({ namespace: 'd', name })
const listeners = [{ name: 'l', port: 80, protocol: 'HTTP' }]
const gatewayclasses = [{ metadata: { name: 'skiff' }, spec: { controllerName: 'skiff.dev/gateway' } }]
const unreadable: Objects = {
  gatewayclasses,
  gateways: [
    { metadata: metadata('a'), spec: { gatewayClassName: 'skiff', listeners: [null] } },
    { metadata: metadata('b'), spec: { gatewayClassName: 'skiff', listeners } },
  ],
  httproutes: [
    { metadata: metadata('a'), spec: { parentRefs: [{ name: 'b' }], rules: [null] } },
    { metadata: metadata('b'), spec: { parentRefs: [{ name: 'b' }], rules: [{}] } },
  ],
}

/** Informers whose objects are there from the start and never change. */
function informersOf(objects: Objects): SharedInformerFactory {
  const of = ({ resource }: { resource: string }) => {
    const all = new Map((objects[resource] ?? []).map((one) => [keyOf(one as KubeObject), one]))
    const store = { get: (key: string) => all.get(key), keys: () => all.keys(), list: () => [...all.values()], byIndex: () => [] }
    const addHandler = ({ onAdd }: { onAdd: (object: object) => void }) => {
      for (const one of all.values()) onAdd(one)
      return { remove: () => {} }
    }
    return { store, addHandler, addIndexers: () => {}, hasSynced: () => true, synced: async () => {} }
  }
  return { of } as unknown as SharedInformerFactory
}

const neverAsked = {
  of: () => {
    throw new Error('all informers are read')
  },
}

const keyOf = ({ metadata: { namespace, name } }: KubeObject) => (namespace ? `${namespace}/${name}` : `${name}`)

/** @returns the routes of these objects, and what was logged about them */
async function routesOf(objects: Objects): Promise<{ routes: GatewayRoutes; logged: string[]; end: () => Promise<void> }> {
  const stop = new AbortController()
  const logged: string[] = []
  const log = { ...noLog, error: (_: unknown, message: string, { key }: { key?: string } = {}) => void logged.push(`${message}: ${key}`) }
  const routes = createGatewayRoutes({ client: neverAsked, informers: informersOf(objects), clock, random: seededRandom(1), log })
  const running = routes.run(stop.signal)
  await routes.ready
  const end = async () => {
    stop.abort(new Error('the test is over'))
    await running
  }
  return { routes, logged, end }
}

test('ING-05 a Gateway and a route that cannot be read leave the others served; the Gateway is logged, and a condition of the route says so', async () => {
  const { routes, logged, end } = await routesOf(unreadable)
  assert.deepEqual([...routes.table.portsOf('d/b').keys()], [80])
  assert.equal(routes.table.attachedCount('d/b', 'l'), 1)
  assert.deepEqual(logged, ['A Gateway or route could not be taken over: d/a'])
  const { attachments = [] } = routes.verdictOnRoute('HTTPRoute/d/a') ?? {}
  assert.deepEqual([attachments.length, attachments[0]?.accepted.reason], [1, 'UnsupportedValue'])
  assert.match(attachments[0]?.accepted.message ?? '', /^The route cannot be read: /)
  await end()
})

const tlsListeners = [
  { name: 'any', port: 443, protocol: 'TLS', tls: { mode: 'Passthrough' } },
  { name: 'wild', hostname: '*.example.com', port: 443, protocol: 'TLS', tls: { mode: 'Passthrough' } },
  { name: 'one', hostname: 'b.example.com', port: 443, protocol: 'TLS', tls: { mode: 'Passthrough' } },
  { name: 'keyless', hostname: 'c.example.com', port: 443, protocol: 'TLS', tls: { mode: 'Terminate' } },
  { name: 'http', port: 80, protocol: 'HTTP' },
]
const tlsRoute = (name: string, hostnames: readonly string[], ...backends: readonly (string | [name: string, weight: number])[]) => {
  const backendRefs = backends.map((one) => (typeof one === 'string' ? { name: one, port: 443 } : { name: one[0], port: 443, weight: one[1] }))
  return { metadata: metadata(name), spec: { parentRefs: [{ name: 'g' }], hostnames, rules: [{ backendRefs }] } }
}
const tlsObjects: Objects = {
  gatewayclasses,
  gateways: [{ metadata: metadata('g'), spec: { gatewayClassName: 'skiff', listeners: tlsListeners } }],
  services: ['exact', 'wild', 'wider', 'other'].map((name) => ({ metadata: metadata(name), spec: { ports: [{ port: 443 }] } })),
  tlsroutes: [
    tlsRoute('exact', ['A.example.com'], 'exact'),
    tlsRoute('wild', ['*.example.com'], 'wild'),
    tlsRoute('wider', ['*.com', 'a.org'], 'wider'),
    tlsRoute('zero', ['zero.example.com'], ['exact', 0]),
    tlsRoute('half', ['half.example.com'], ['absent', 1], 'other'),
  ],
}

test('ING-05 a connection takes the listener with the most specific host, and of its TLSRoutes the one with the most specific hostname', async () => {
  const { routes, logged, end } = await routesOf(tlsObjects)
  const reached = (name: string, port = 443) => routes.stream('d/g', port, name)?.backend.service
  const wanted: Record<string, string | undefined> = {
    'a.example.com': 'd/exact',
    'x.example.com': 'd/wild',
    'x.y.example.com': 'd/wild',
    // Its own listener has the routes that cover its host.
    'b.example.com': 'd/wild',
    'example.com': 'd/wider',
    'x.com': 'd/wider',
    'a.org': 'd/wider',
    'b.org': undefined,
    '': undefined,
    'zero.example.com': undefined,
    // Its listener has no certificate, so it is not served, and another one takes its host.
    'c.example.com': 'd/wild',
  }
  assert.deepEqual(Object.fromEntries(Object.keys(wanted).map((name) => [name, reached(name)])), wanted)
  assert.deepEqual([reached('a.example.com', 80), reached('a.example.com', 444), routes.stream('d/h', 443, 'a.example.com')], [undefined, undefined, undefined])
  const shares = Array.from({ length: 400 }, () => reached('half.example.com') ?? 'refused')
  const refused = shares.filter((one) => one === 'refused').length
  assert.ok(refused > 150 && refused < 250 && shares.includes('d/other'), `refused: ${refused}`)
  assert.deepEqual(logged, [])
  await end()
})

test('ING-05 TLSRoutes attach to TLS listeners only, are counted there, and say which backends do not exist', async () => {
  const { routes, end } = await routesOf(tlsObjects)
  const { listeners = [] } = routes.verdictOnGateway('d/g') ?? {}
  const kinds = ['TLSRoute']
  assert.deepEqual(
    listeners.map(({ name, kinds: of, isServed }) => [name, of, isServed, routes.table.attachedCount('d/g', name)]),
    [
      ['any', kinds, true, 5],
      ['wild', kinds, true, 5],
      ['one', kinds, true, 2],
      ['keyless', kinds, false, 2],
      ['http', ['HTTPRoute', 'GRPCRoute'], true, 0],
    ],
  )
  const { rules } = routes.verdictOnRoute('TLSRoute/d/half') ?? {}
  assert.deepEqual([rules?.accepted.status, rules?.resolved.reason, rules?.resolved.message], ['True', 'BackendNotFound', 'There is no Service d/absent'])
  await end()
})
