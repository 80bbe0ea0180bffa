import assert from 'node:assert/strict'
import { test } from 'node:test'
import { comparablePath } from '../requestPath.ts'
import { type AttachedRoute, GatewayTable } from './gatewayTable.ts'
import { compileHttpRules } from './httpRules.ts'
import type { Gateway, HttpMatch, HttpRoute, HttpRule, Listener } from './kinds.ts'
import { compileListeners } from './listeners.ts'
import type { ClusterView } from './view.ts'

const service = { apiVersion: 'v1', kind: 'Service', metadata: {}, spec: { ports: [{ port: 80 }] }, status: {} }
const view = {
  service: () => service,
  problemOfSecret: () => undefined,
  namespaceLabels: () => ({}),
  grantsIn: () => [],
  policiesFor: () => [],
} as unknown as ClusterView
const gateway = 'd/g'

function tableOf(
  listeners: Partial<Listener>[],
  ...routes: [name: string, route: Partial<HttpRoute['spec']>, listeners?: string[], created?: string][]
): GatewayTable {
  const table = new GatewayTable()
  const spec = { gatewayClassName: 'skiff', listeners: listeners.map((one, at) => ({ name: `l${at}`, port: 80, protocol: 'HTTP', ...one })) }
  table.setListeners(gateway, compileListeners({ metadata: { namespace: 'd', name: 'g' }, spec } as unknown as Gateway, view))
  for (const [name, route, attached = ['l0'], created = ''] of routes) put(table, name, route, attached, created)
  return table
}

function put(table: GatewayTable, name: string, spec: Partial<HttpRoute['spec']> | undefined, attached = ['l0'], creationTimestamp = ''): void {
  const { matches = [] } = spec ? compileHttpRules({ metadata: { namespace: 'd', name, creationTimestamp }, spec } as unknown as HttpRoute, view) : {}
  const listeners = new Map([[gateway, new Set(attached)]])
  const now: AttachedRoute | undefined = spec && { key: `d/${name}`, hosts: spec.hostnames ?? [''], matches, listeners }
  for (const _ of table.update(`d/${name}`, now));
}

const rule = (name: string, ...matches: HttpMatch[]): HttpRule => ({ matches, backendRefs: [{ name, port: 80 }] })
const prefix = (value: string, more: HttpMatch = {}): HttpMatch => ({ path: { type: 'PathPrefix', value }, ...more })
const exact = (value: string): HttpMatch => ({ path: { type: 'Exact', value } })

interface Request {
  readonly host?: string
  readonly method?: string
  readonly headers?: Record<string, string>
}

/** The Service that a request reaches: `listener` has its host. */
function reached(table: GatewayTable, url: string, { host = 'a.test', method = 'GET', headers = {} }: Request = {}): string | undefined {
  const listener = table.listenerOf(gateway, 80, host)
  const path = comparablePath(url.split('?')[0] ?? '') ?? ''
  return listener && table.route(gateway, listener.name, { host, path, url, method, headers }, () => 0)?.backend?.service.split('/')[1]
}

const header = (name: string, value: string) => ({ headers: [{ name, value }] })

/** By the specification: exact path, longest prefix, method, most headers, most query parameters. */
const precedence: [what: string, rules: HttpRule[], url: string, request: Request, wanted: string | undefined][] = [
  ['an exact path over a longer list of headers', [rule('p', prefix('/a', header('x', '1'))), rule('e', exact('/a'))], '/a', { headers: { x: '1' } }, 'e'],
  ['the longer prefix', [rule('short', prefix('/a')), rule('long', prefix('/a/b'))], '/a/b/c', {}, 'long'],
  ['elements of paths, not characters', [rule('a', prefix('/a'))], '/ab', {}, undefined],
  ['a shorter prefix when the longer one wants another header', [rule('s', prefix('/a')), rule('l', prefix('/a/b', header('x', '1')))], '/a/b', {}, 's'],
  ['the method over headers', [rule('h', prefix('/', header('x', '1'))), rule('m', prefix('/', { method: 'GET' }))], '/', { headers: { x: '1' } }, 'm'],
  [
    'more headers over fewer, in any order',
    [
      rule('one', prefix('/', header('x', '1'))),
      rule(
        'two',
        prefix('/', {
          headers: [
            { name: 'X', value: '1' },
            { name: 'y', value: '2' },
          ],
        }),
      ),
    ],
    '/',
    { headers: { x: '1', y: '2' } },
    'two',
  ],
  ['more query parameters over none', [rule('n', prefix('/')), rule('q', prefix('/', { queryParams: [{ name: 'q', value: 'a b' }] }))], '/?q=a%20b', {}, 'q'],
  ['the first rule when all is equal', [rule('first', prefix('/')), rule('second', prefix('/'))], '/', {}, 'first'],
  ['no rule of another method', [rule('m', prefix('/', { method: 'POST' }))], '/', {}, undefined],
  ['no rule of a header that is not sent', [rule('h', prefix('/', header('constructor', 'undefined')))], '/', {}, undefined],
]
for (const [what, rules, url, request, wanted] of precedence) {
  test(`ING-05 a request takes ${what}`, () => {
    assert.equal(reached(tableOf([{}], ['r', { rules }]), url, request), wanted)
  })
}

test('ING-05 the older route has a match that two routes name, then the first by name', () => {
  const table = tableOf(
    [{}],
    ['b', { rules: [rule('b', prefix('/'))] }, ['l0'], '2026-01-02'],
    ['a', { rules: [rule('a', prefix('/'))] }, ['l0'], '2026-01-03'],
  )
  assert.equal(reached(table, '/'), 'b')
  put(table, 'a', { rules: [rule('a', prefix('/'))] }, ['l0'], '2026-01-02')
  assert.equal(reached(table, '/'), 'a')
})

test('ING-05 the most specific host of routes comes first, and others answer what it does not', () => {
  const table = tableOf(
    [{}],
    ['any', { rules: [rule('any', prefix('/x'))] }],
    ['wild', { hostnames: ['*.test'], rules: [rule('wild', prefix('/y'))] }],
    ['deep', { hostnames: ['*.b.test'], rules: [rule('deep', prefix('/'))] }],
    ['one', { hostnames: ['a.test'], rules: [rule('one', prefix('/z'))] }],
  )
  assert.deepEqual(
    ['/z', '/y', '/x', '/'].map((url) => reached(table, url)),
    ['one', 'wild', 'any', undefined],
  )
  assert.deepEqual([reached(table, '/y', { host: 'c.b.test' }), reached(table, '/y', { host: 'b.test' })], ['deep', 'wild'])
})

test('ING-05 a listener takes the requests of its host, and routes of other listeners do not answer them', () => {
  const listeners = [{}, { hostname: '*.test' }, { hostname: 'a.test' }]
  const table = tableOf(listeners, ['any', { rules: [rule('any', prefix('/'))] }, ['l0']], ['wild', { rules: [rule('wild', prefix('/'))] }, ['l1']])
  assert.deepEqual(
    ['x.other', 'b.test', 'c.b.test', 'a.test'].map((host) => reached(table, '/', { host })),
    ['any', 'wild', 'wild', undefined],
  )
})

test('ING-05 a changed route gives up what it no longer names and a deleted one everything', () => {
  const table = tableOf([{}], ['r', { hostnames: ['a.test', 'b.test'], rules: [rule('r', prefix('/a'), exact('/b'))] }])
  put(table, 'r', { hostnames: ['a.test'], rules: [rule('r', prefix('/a'), prefix('/c'))] })
  assert.deepEqual(
    ['/a', '/b', '/c'].map((url) => reached(table, url)),
    ['r', undefined, 'r'],
  )
  assert.equal(reached(table, '/a', { host: 'b.test' }), undefined)
  assert.equal(table.attachedCount(gateway, 'l0'), 1)
  put(table, 'r', undefined)
  assert.equal(reached(table, '/a'), undefined)
  assert.equal(table.attachedCount(gateway, 'l0'), 0)
})

test('ING-05 requests are divided by weight, none goes to a weight of zero, and the share of a missing backend is refused', () => {
  const missing = { ...view, service: (key: string) => (key === 'd/gone' ? undefined : service) } as unknown as ClusterView
  const backendRefs = [
    { name: 'zero', port: 80, weight: 0 },
    { name: 'one', port: 80, weight: 1 },
    { name: 'gone', port: 80, weight: 3 },
  ]
  const { matches, resolved } = compileHttpRules(
    { metadata: { namespace: 'd', name: 'r' }, spec: { rules: [{ backendRefs }] } } as unknown as HttpRoute,
    missing,
  )
  assert.equal(resolved.reason, 'BackendNotFound')
  const table = tableOf([{}])
  for (const _ of table.update('d/r', { key: 'd/r', hosts: [''], matches, listeners: new Map([[gateway, new Set(['l0'])]]) }));
  const asked = { host: 'a', path: '/', url: '/', method: 'GET', headers: {} }
  const shares = [0, 0.24, 0.25, 0.99].map((random) => table.route(gateway, 'l0', asked, () => random)?.backend?.service)
  assert.deepEqual(shares, ['d/one', 'd/one', undefined, undefined])
})

for (const [what, filter] of [
  ['a header of the request', { type: 'RequestHeaderModifier', requestHeaderModifier: { set: [{ name: 'x', value: 'a\nb' }] } }],
  ['a header of the answer', { type: 'ResponseHeaderModifier', responseHeaderModifier: { add: [{ name: 'x', value: '日本' }] } }],
] as const)
  test(`ING-05 a rule is not served, and says why, ${what} has a value that HTTP does not allow`, () => {
    const rules = [{ backendRefs: [{ name: 's', port: 80 }], filters: [filter] }]
    const { accepted } = compileHttpRules({ metadata: { namespace: 'd', name: 'r' }, spec: { rules } } as unknown as HttpRoute, view)
    assert.deepEqual([accepted.status, accepted.reason], ['False', 'UnsupportedValue'])
    assert.match(accepted.message, /the value of the header x, which has characters that HTTP does not allow/)
  })

test('ING-05 a path of a filter is written with percent signs where a request cannot hold it, and begins with a slash', () => {
  const paths = ['/日本', '/a b#c', 'example.com', '/a\r\nX: 1', '/ok%20?x=1'].map((replaceFullPath) => {
    const filters = [{ type: 'URLRewrite', urlRewrite: { path: { type: 'ReplaceFullPath', replaceFullPath } } }]
    const rules = [{ backendRefs: [{ name: 's', port: 80 }], filters }]
    const { matches } = compileHttpRules({ metadata: { namespace: 'd', name: 'r' }, spec: { rules } } as unknown as HttpRoute, view)
    return matches[0]?.rule.changes.rewrite?.path?.path
  })
  assert.deepEqual(paths, ['/%E6%97%A5%E6%9C%AC', '/a%20b%23c', '/example.com', '/a%0D%0AX:%201', '/ok%20?x=1'])
})

test('ING-05 a redirect of one backend redirects the requests that would go to that backend, and no others', () => {
  const filters = [{ type: 'RequestRedirect', requestRedirect: { scheme: 'https' } }]
  const backendRefs = [
    { name: 'a', port: 80, filters },
    { name: 'b', port: 80 },
  ]
  const route = { metadata: { namespace: 'd', name: 'r' }, spec: { rules: [{ backendRefs }] } } as unknown as HttpRoute
  const { matches } = compileHttpRules(route, view)
  const table = tableOf([{}])
  for (const _ of table.update('d/r', { key: 'd/r', hosts: [''], matches, listeners: new Map([[gateway, new Set(['l0'])]]) }));
  const asked = { host: 'a', path: '/', url: '/', method: 'GET', headers: {} }
  const schemes = [0, 0.9].map((random) => table.route(gateway, 'l0', asked, () => random)?.redirect?.scheme)
  assert.deepEqual(schemes, ['https', undefined])
})

test('ING-05 a route of 2,000 rules, one of a regular expression and one of an unknown filter name what is not served', () => {
  const rules = Array.from({ length: 2000 }, (_, at) => rule('s', prefix(`/p${at}`)))
  const odd: HttpRule[] = [{ matches: [{ path: { type: 'RegularExpression', value: '/(a+)+$' } }] }, { filters: [{ type: 'ExtensionRef' }] }]
  const compile = (given: HttpRule[]) => compileHttpRules({ metadata: { namespace: 'd', name: 'r' }, spec: { rules: given } } as unknown as HttpRoute, view)
  const { matches, accepted, partiallyInvalid } = compile([...rules, ...odd])
  assert.deepEqual([matches.length, accepted.status], [2000, 'True'])
  assert.match(partiallyInvalid?.message ?? '', /^Dropped Rule: a path of type RegularExpression of rule 2000 is not supported, and 1 more$/)
  assert.deepEqual([compile(odd).accepted.reason, compile(odd).partiallyInvalid], ['UnsupportedValue', undefined])
})
