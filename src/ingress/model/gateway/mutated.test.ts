/** Mutated routes, as no API server should let them pass: each gets a verdict, takes bounded steps, and leaves its neighbours as they are. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Frozen } from '#api/machinery/meta'
import { seededRandom } from '#base/random'
import { createMutator } from '#testing/mutator'
import { threadMs } from '#testing/threadTime'
import { GatewayTable } from './gatewayTable.ts'
import type { Gateway } from './kinds.ts'
import { compileListeners } from './listeners.ts'
import { conditionsOf } from './outcome.ts'
import { type AnyRoute, type RouteKindName, readRoute } from './routeKinds.ts'
import { routeParents } from './statuses.ts'
import { attachedOf, judgeRoute } from './verdicts.ts'
import type { ClusterView } from './view.ts'

const random = seededRandom(23)
const { mutate } = createMutator(random, 30)

const service = { apiVersion: 'v1', kind: 'Service', metadata: {}, spec: { ports: [{ port: 80 }] }, status: {} }
const view = {
  service: (key: string) => (key === 'd/absent' ? undefined : service),
  problemOfSecret: () => undefined,
  namespaceLabels: () => ({}),
  grantsIn: () => [],
  policiesFor: () => [],
  authoritiesIn: () => ({ problem: 'there is none' }),
} as unknown as ClusterView

const gateway = {
  metadata: { namespace: 'd', name: 'g' },
  spec: {
    listeners: [
      { name: 'http', port: 80, protocol: 'HTTP' },
      { name: 'wild', port: 80, protocol: 'HTTP', hostname: '*.test' },
      { name: 'tls', port: 443, protocol: 'TLS', tls: { mode: 'Passthrough' } },
    ],
  },
} as unknown as Gateway
const listeners = compileListeners(gateway, view)

const backendRefs = [
  { name: 's', port: 80, weight: 2 },
  { group: '', kind: 'Service', name: 'absent', namespace: 'd', port: 80, filters: [{ type: 'RequestRedirect', requestRedirect: { port: 1 } }] },
]
const headers = { set: [{ name: 'x', value: '1' }], add: [{ name: 'y', value: '2' }], remove: ['z'] }
const parentRefs = [{ name: 'g' }, { group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'd', name: 'g', sectionName: 'http', port: 80 }]
const specs: Readonly<Record<RouteKindName, object>> = {
  HTTPRoute: {
    parentRefs,
    hostnames: ['a.test', '*.b.test'],
    rules: [
      {
        name: 'first',
        matches: [
          { path: { type: 'PathPrefix', value: '/a/b' }, method: 'GET', headers: [{ type: 'Exact', name: 'h', value: 'v' }] },
          { path: { type: 'Exact', value: '/c' }, queryParams: [{ name: 'q', value: 'v' }] },
        ],
        filters: [
          { type: 'RequestHeaderModifier', requestHeaderModifier: headers },
          { type: 'ResponseHeaderModifier', responseHeaderModifier: headers },
          { type: 'URLRewrite', urlRewrite: { hostname: 'c.test', path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/d' } } },
          { type: 'RequestMirror', requestMirror: { backendRef: { name: 's', port: 80 }, fraction: { numerator: 1, denominator: 2 } } },
          { type: 'CORS', cors: { allowOrigins: ['https://a.test'], allowMethods: ['GET'], maxAge: 5 } },
        ],
        backendRefs,
        timeouts: { request: '10s', backendRequest: '2s' },
      },
      {
        filters: [{ type: 'RequestRedirect', requestRedirect: { scheme: 'https', statusCode: 301, path: { type: 'ReplaceFullPath', replaceFullPath: '/' } } }],
      },
    ],
  },
  GRPCRoute: {
    parentRefs,
    hostnames: ['a.test'],
    rules: [
      { matches: [{ method: { type: 'Exact', service: 'a.B', method: 'C' }, headers: [{ name: 'h', value: 'v' }] }, { method: { method: 'D' } }], backendRefs },
    ],
  },
  TLSRoute: { parentRefs, hostnames: ['a.test', '*.test'], rules: [{ name: 'only', backendRefs }] },
}
const kinds = Object.keys(specs) as RouteKindName[]

const asked = { host: 'neighbour.test', path: '/n', url: '/n', method: 'GET', headers: {} }

function placedIn(table: GatewayTable, key: string, kind: RouteKindName, spec: unknown) {
  const metadata = { namespace: 'd', name: key, creationTimestamp: '2026-01-01T00:00:00Z', generation: 1 }
  const raw = { apiVersion: 'gateway.networking.k8s.io/v1', kind, metadata, spec } as unknown as Frozen<AnyRoute>
  const verdict = judgeRoute(kind, readRoute(kind, raw), view, ({ key: name }) => (name === 'd/g' ? { gateway: name, listeners } : undefined))
  const now = verdict && attachedOf(key, verdict)
  let steps = 0
  for (const _ of table.update(key, now)) steps++
  return { verdict, now, steps }
}

test('ING-05 100,000 mutated routes each get conditions or none of a Gateway, take bounded steps, and leave a neighbour’s requests as they are', () => {
  const table = new GatewayTable()
  table.setListeners('d/g', listeners)
  const rules = [{ matches: [{ path: { value: '/n' } }], backendRefs: [{ name: 'neighbour', port: 80 }] }]
  placedIn(table, 'neighbour', 'HTTPRoute', { parentRefs: [{ name: 'g' }], hostnames: ['neighbour.test'], rules })
  const neighbour = () => table.route('d/g', 'wild', asked, () => 0)?.backend?.service
  assert.equal(neighbour(), 'd/neighbour')
  const seen = { accepted: 0, refused: 0, elsewhere: 0 }
  const keys = new Set<string>()
  let slowest = 0
  let beforeMs = threadMs()
  for (let i = 0; i < 100_000; i++) {
    const kind = kinds[random.int(kinds.length)] as RouteKindName
    const key = `${kind} ${random.int(100)}`
    const spec = mutate(specs[kind])
    const { verdict, now, steps } = placedIn(table, key, kind, spec)
    keys.add(key)
    const places = (now?.hosts.length ?? 0) * (now?.matches.length ?? 0) * (now?.listeners.size ?? 0)
    assert.ok(steps <= places / 200 + 1000, `${steps} steps for ${places} places`)
    const parents = verdict ? routeParents(verdict.route, verdict.attachments, verdict.rules, '2026-01-01T00:00:00Z') : []
    for (const { conditions } of parents) {
      assert.ok(conditions.every(({ status, reason, message }) => /^(True|False)$/.test(status) && /^\w+$/.test(reason) && typeof message === 'string'))
    }
    const isAccepted = parents.some(({ conditions }) => conditions.some(({ type, status }) => type === 'Accepted' && status === 'True'))
    seen[parents.length === 0 ? 'elsewhere' : isAccepted ? 'accepted' : 'refused']++
    if (now && i % 10 === 0)
      for (const host of now.hosts.slice(0, 3))
        for (const listener of ['http', 'wild', 'tls']) table.route('d/g', listener, { ...asked, host, path: '/a/b' }, () => random.next())
    if (i % 50 > 0) continue
    assert.equal(neighbour(), 'd/neighbour')
    slowest = Math.max(slowest, threadMs() - beforeMs)
    beforeMs = threadMs()
  }
  for (const key of keys) for (const _ of table.update(key, undefined));
  assert.equal(neighbour(), 'd/neighbour')
  assert.deepEqual(
    ['http', 'wild', 'tls'].map((listener) => table.attachedCount('d/g', listener)),
    [1, 1, 0],
  )
  for (const [what, count] of Object.entries(seen)) assert.ok(count > 1000, `${what}: ${count}`)
  assert.ok(slowest < 250, `fifty routes took ${slowest} ms`)
})

test('ING-05 20,000 mutated Gateways are compiled or refused with an error, and the conditions of their listeners have the form of conditions', () => {
  const listenersOf = {
    gatewayClassName: 'skiff',
    listeners: [
      ...(gateway.spec.listeners ?? []),
      {
        name: 's',
        hostname: 'x',
        port: 443,
        protocol: 'HTTPS',
        tls: { certificateRefs: [{ name: 'c' }] },
        allowedRoutes: { kinds: [{ kind: 'HTTPRoute' }], namespaces: { from: 'Selector', selector: { matchLabels: { a: 'b' } } } },
      },
    ],
  }
  let refused = 0
  for (let i = 0; i < 20_000; i++) {
    const one = { metadata: { namespace: 'd', name: 'm' }, spec: mutate(listenersOf) } as unknown as Gateway
    try {
      for (const { outcomes } of compileListeners(one, view)) {
        for (const { status, reason } of conditionsOf(outcomes, 1, [], 'now')) assert.ok(/^(True|False)$/.test(status) && /^\w+$/.test(reason))
      }
    } catch (error) {
      // The loop over Gateways logs it with the Gateway's name, and takes the others.
      assert.ok(error instanceof TypeError, String(error))
      refused++
    }
  }
  assert.ok(refused > 100 && refused < 19_000, `refused: ${refused}`)
})
