import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Ingress, IngressSpec } from '#api/gen/types/networking.v1'
import { hostOf } from './hostName.ts'
import { parseIngress } from './parsedIngress.ts'
import { comparablePath } from './requestPath.ts'
import { RoutingTable } from './routingTable.ts'

const created = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString().replace('.000', '')

function ingress(name: string, spec: Partial<IngressSpec>, second = 0): Ingress {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: { name, namespace: 'd', creationTimestamp: created(second) },
    spec: spec as IngressSpec,
    status: {},
  }
}

const backend = (name: string) => ({ service: { name, port: { number: 80 } } })
const path = (text: string, name: string, pathType = 'Prefix') => ({ path: text, pathType, backend: backend(name) })
const rule = (host: string | undefined, ...paths: ReturnType<typeof path>[]) => ({ ...(host === undefined ? {} : { host }), http: { paths } })

function tableOf(...ingresses: Ingress[]): RoutingTable {
  const table = new RoutingTable()
  change(table, ...ingresses)
  return table
}

function change(table: RoutingTable, ...ingresses: Ingress[]): ReadonlySet<string> {
  const changes = new Map(ingresses.map((one) => [`d/${one.metadata.name}`, parseIngress(one)]))
  return finish(table.update(changes))
}

function finish<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

const serviceAt = (table: RoutingTable, host: string, target: string) => table.route(host, comparablePath(target) ?? '')?.backend.service

/** The examples of the reference documentation of Ingress: kind, paths, requested path, and the path that matches. */
const documented: [kind: string, paths: string[], asked: string, matches: string | undefined][] = [
  ['Prefix', ['/'], '/any/path', '/'],
  ['Exact', ['/foo'], '/foo', '/foo'],
  ['Exact', ['/foo'], '/bar', undefined],
  ['Exact', ['/foo'], '/foo/', undefined],
  ['Exact', ['/foo/'], '/foo', undefined],
  ['Prefix', ['/foo'], '/foo', '/foo'],
  ['Prefix', ['/foo'], '/foo/', '/foo'],
  ['Prefix', ['/foo/'], '/foo', '/foo/'],
  ['Prefix', ['/foo/'], '/foo/', '/foo/'],
  ['Prefix', ['/aaa/bb'], '/aaa/bbb', undefined],
  ['Prefix', ['/aaa/bbb'], '/aaa/bbb', '/aaa/bbb'],
  ['Prefix', ['/aaa/bbb/'], '/aaa/bbb', '/aaa/bbb/'],
  ['Prefix', ['/aaa/bbb'], '/aaa/bbb/', '/aaa/bbb'],
  ['Prefix', ['/aaa/bbb'], '/aaa/bbb/ccc', '/aaa/bbb'],
  ['Prefix', ['/aaa/bbb'], '/aaa/bbbxyz', undefined],
  ['Prefix', ['/', '/aaa'], '/aaa/ccc', '/aaa'],
  ['Prefix', ['/', '/aaa', '/aaa/bbb'], '/aaa/bbb', '/aaa/bbb'],
  ['Prefix', ['/', '/aaa', '/aaa/bbb'], '/ccc', '/'],
  ['Prefix', ['/aaa'], '/ccc', undefined],
  ['ImplementationSpecific', ['/aaa'], '/aaa/b', '/aaa'],
]

for (const [kind, paths, asked, matches] of documented) {
  test(`ING-02 a request of ${asked} matches ${matches ?? 'nothing'}, with ${kind} ${paths.join(' and ')}`, () => {
    const name = (text: string) => `s${paths.indexOf(text)}`
    const table = tableOf(ingress('a', { rules: [rule('a.test', ...paths.map((one) => path(one, name(one), kind)))] }))
    assert.equal(serviceAt(table, 'a.test', asked), matches === undefined ? undefined : `d/${name(matches)}`)
  })
}

test('ING-02 an exact path wins over an equal prefix, whatever their order', () => {
  for (const paths of [
    [path('/foo', 'exact', 'Exact'), path('/foo', 'prefix')],
    [path('/foo', 'prefix'), path('/foo', 'exact', 'Exact')],
  ]) {
    const table = tableOf(ingress('a', { rules: [rule('a.test', ...paths)] }))
    assert.equal(serviceAt(table, 'a.test', '/foo'), 'd/exact')
    assert.equal(serviceAt(table, 'a.test', '/foo/x'), 'd/prefix')
  }
})

const hosts = tableOf(
  ingress('exact', { rules: [rule('foo.bar.com', path('/a', 'exact'))] }),
  ingress('wild', { rules: [rule('*.bar.com', path('/', 'wild'))] }),
  ingress('any', { rules: [rule(undefined, path('/', 'any'))] }),
)
const hostCases = [
  { host: 'foo.bar.com', path: '/a', want: 'd/exact' },
  { host: 'foo.bar.com', path: '/b', want: undefined },
  { host: 'other.bar.com', path: '/b', want: 'd/wild' },
  { host: 'two.labels.bar.com', path: '/b', want: 'd/any' },
  { host: 'bar.com', path: '/b', want: 'd/any' },
  { host: 'else', path: '/b', want: 'd/any' },
]
for (const { host, path: asked, want } of hostCases) {
  test(`ING-02 host ${host} with path ${asked} goes to ${want ?? 'no Service'}`, () => assert.equal(serviceAt(hosts, host, asked), want))
}

test('ING-02 a default backend serves the paths of its hosts without a rule, and without rules all that no rule matches', () => {
  const table = tableOf(
    ingress('own', { defaultBackend: backend('own'), rules: [rule('a.test', path('/a', 'a'))] }),
    ingress('all', { defaultBackend: backend('all') }),
    ingress('plain', { rules: [rule('b.test', path('/b', 'b')), { host: 'c.test' }] }),
  )
  const asked = ['a.test/a', 'a.test/x', 'b.test/b', 'b.test/x', 'c.test/x', 'z.test/x'].map((one) => {
    const slash = one.indexOf('/')
    return serviceAt(table, one.slice(0, slash), one.slice(slash))
  })
  assert.deepEqual(asked, ['d/a', 'd/own', 'd/b', 'd/all', 'd/all', 'd/all'])
})

test('ING-02 the older Ingress keeps a path, a certificate and the default backend, and the younger one has problems until the older one is gone', () => {
  const spec = (name: string) => ({ rules: [rule('a.test', path('/', name))], tls: [{ hosts: ['a.test'], secretName: name }] })
  const table = tableOf(ingress('young', spec('young'), 9), ingress('old', spec('old'), 1))
  const defaults = [ingress('y', { defaultBackend: backend('y') }, 8), ingress('o', { defaultBackend: backend('o') }, 7)]
  change(table, ...defaults)
  assert.equal(serviceAt(table, 'a.test', '/'), 'd/old')
  assert.equal(table.certificate('a.test'), 'd/old')
  assert.equal(serviceAt(table, 'z.test', '/'), 'd/o')
  assert.deepEqual(table.problems('d/old'), [])
  assert.deepEqual(table.problems('d/young'), [
    'path / of host "a.test" belongs to an older Ingress',
    'the certificate of host "a.test" is that of an Ingress that is older or has a rule for the host',
  ])
  assert.deepEqual(table.problems('d/y'), ['an older Ingress has the default backend of all hosts'])
  const touched = finish(table.update(new Map([['d/old', undefined]])))
  assert.ok(touched.has('d/young'))
  assert.equal(serviceAt(table, 'a.test', '/'), 'd/young')
  assert.equal(table.certificate('a.test'), 'd/young')
  assert.deepEqual(table.problems('d/young'), [])
})

test('ING-02 a certificate is chosen by server name: exact, then the wildcard of one label; without hosts those of the rules count', () => {
  const table = tableOf(
    ingress('a', {
      rules: [rule('r.test', path('/', 's'))],
      tls: [{ hosts: ['*.w.test'], secretName: 'wild' }, { hosts: ['X.w.test'], secretName: 'exact' }, { secretName: 'rules' }],
    }),
  )
  const asked = ['a.w.test', 'x.w.test', 'a.b.w.test', 'w.test', 'r.test', ''].map((name) => table.certificate(name))
  assert.deepEqual(asked, ['d/wild', 'd/exact', undefined, undefined, 'd/rules', undefined])
})

const certificateCases = [
  { what: 'names the host, too', young: { rules: [rule('a.w.test', path('/b', 'b'))], tls: [{ hosts: ['a.w.test'], secretName: 'young' }] } },
  { what: 'names the host in its certificate only', young: { tls: [{ hosts: ['a.w.test'], secretName: 'young' }] } },
]
for (const { what, young } of certificateCases) {
  test(`ING-02 a host keeps the wildcard certificate of the older Ingress that serves it, and a younger one that ${what} has a problem`, () => {
    const wild = { tls: [{ hosts: ['*.w.test'], secretName: 'wild' }] }
    for (const host of what.includes('only') ? ['a.w.test', '*.w.test'] : ['a.w.test']) {
      const table = tableOf(ingress('old', { ...wild, rules: [rule(host, path('/', 'a'))] }, 1), ingress('young', young, 2))
      assert.equal(table.certificate('a.w.test'), 'd/wild', host)
      assert.deepEqual(table.problems('d/old'), [])
      assert.deepEqual(table.problems('d/young'), ['the certificate of host "a.w.test" is that of an Ingress that is older or has a rule for the host'])
      change(table, ingress('old', { rules: [rule('else.test', path('/', 'a'))] }, 1))
      assert.equal(table.certificate('a.w.test'), 'd/young')
    }
  })
}

test('ING-02 the Ingresses that name a Secret are those of now', () => {
  const naming = (name: string, ...secrets: string[]) => ingress(name, { tls: secrets.map((secretName) => ({ hosts: [`${secretName}.test`], secretName })) })
  const table = tableOf(naming('a', 'one', 'two'), naming('b', 'two'))
  const found = () => ['d/one', 'd/two', 'd/three'].map((secret) => [...table.ingressesOf(secret)].sort())
  assert.deepEqual(found(), [['d/a'], ['d/a', 'd/b'], []])
  change(table, naming('a', 'three'))
  assert.deepEqual(found(), [[], ['d/b'], ['d/a']])
})

test('ING-02 the default backend of a host is that of the older Ingress, and the younger one has a problem', () => {
  const spec = (name: string) => ({ defaultBackend: backend(name), rules: [rule('a.test', path(`/${name}`, name))] })
  const table = tableOf(ingress('young', spec('young'), 2), ingress('old', spec('old'), 1))
  assert.equal(serviceAt(table, 'a.test', '/'), 'd/old')
  assert.deepEqual(table.problems('d/young'), ['an older Ingress has the default backend of host "a.test"'])
})

test('ING-02 a prefix of more than 64 elements is a problem, which shows the beginning of it', () => {
  const deep = '/a'.repeat(64)
  const table = tableOf(ingress('a', { rules: [rule('a.test', path(deep, 'served'), path(`${deep}/b/${'c'.repeat(1000)}`, 'deep'))] }))
  for (const asked of [deep, `${deep}/`, `${deep}/b/c`]) assert.equal(serviceAt(table, 'a.test', asked), 'd/served')
  assert.equal(serviceAt(table, 'a.test', deep.slice(2)), undefined)
  assert.deepEqual(table.problems('d/a'), [`path "${deep.slice(0, 100)}" of host "a.test" cannot be matched`])
})

test('ING-02 what cannot be served of an Ingress is a problem, and the rest is served', () => {
  const resource = { resource: { kind: 'Bucket', name: 'b', apiGroup: 'x.test' } }
  const table = tableOf(
    ingress('a', { rules: [{ host: 'a.test', http: { paths: [{ path: '/r', pathType: 'Prefix', backend: resource }, path('/s', 's')] } }] }),
  )
  assert.equal(serviceAt(table, 'a.test', '/s'), 'd/s')
  assert.equal(serviceAt(table, 'a.test', '/r'), undefined)
  assert.deepEqual(table.problems('d/a'), ['path /r of host "a.test": resource backends are not supported'])
})

const pathCases: [raw: string, want: string | undefined][] = [
  ['/a/b', '/a/b'],
  ['/a//b', '/a/b'],
  ['/a/./b/', '/a/b/'],
  ['/public/../admin', '/admin'],
  ['/public/%2e%2E/admin', '/admin'],
  ['/public/..%2fadmin', '/public/..%2Fadmin'],
  ['/%61dmin', '/admin'],
  ['/.well-known/x', '/.well-known/x'],
  ['/..', undefined],
  ['/a/../..', undefined],
  ['/a%00', undefined],
  ['/a%zz', undefined],
  ['a', undefined],
  ['*', undefined],
  ['/%ff', '/\u00ff'],
  ['/', '/'],
]
for (const [raw, want] of pathCases) test(`ING-02 the path ${raw} is compared as ${want ?? 'none'}`, () => assert.equal(comparablePath(raw), want))

const hostNames: [raw: string, want: string | undefined][] = [
  ['A.Test:8080', 'a.test'],
  ['a.test.', 'a.test'],
  ['10.0.0.1:80', '10.0.0.1'],
  ['[::1]:80', '[::1]'],
  ['a.test:x', undefined],
  ['a/b', undefined],
  ['a b', undefined],
  ['', undefined],
  ['*.a.test', undefined],
  [`${'a'.repeat(300)}`, undefined],
]
for (const [raw, want] of hostNames)
  test(`ING-02 the host header ${JSON.stringify(raw.slice(0, 20))} names ${want ?? 'no host'}`, () => assert.equal(hostOf(raw), want))

test('ING-02 one changed Ingress among 2,000 that share a host touches its own places only', () => {
  const some = Array.from({ length: 2000 }, (_, i) =>
    ingress(`i${i}`, { rules: [rule(`h${i}.test`, path('/', `s${i}`)), rule('shared.test', path(`/${i}`, `s${i}`))] }, i),
  )
  const table = tableOf(...some)
  const steps = table.update(new Map([['d/i7', parseIngress(ingress('i7', { rules: [rule('h7.test', path('/', 'other'))] }, 7))]]))
  const { done, value } = steps.next()
  assert.ok(done, 'it needs a pause')
  assert.deepEqual([...value], ['d/i7'])
  assert.equal(serviceAt(table, 'h7.test', '/'), 'd/other')
  assert.equal(serviceAt(table, 'shared.test', '/7'), undefined)
  assert.equal(serviceAt(table, 'shared.test', '/8'), 'd/s8')
})

test('ING-02 an Ingress with 20,000 hosts, paths and certificates is taken in steps, and no path is without its route meanwhile', () => {
  const many = Array.from({ length: 20_000 }, (_, i) => i)
  const spec = (service: string) => ({
    rules: [...many.map((i) => rule(`h${i}.test`, path('/', service))), rule('one.test', ...many.map((i) => path(`/${i}/a/b`, service)))],
    tls: [{ hosts: many.map((i) => `h${i}.test`), secretName: 's' }],
  })
  const table = tableOf(ingress('big', spec('old')))
  let count = 0
  for (const steps = table.update(new Map([['d/big', parseIngress(ingress('big', spec('new')))]])); !steps.next().done; count++) {
    for (const host of ['h0.test', 'h19999.test']) assert.match(serviceAt(table, host, '/') ?? '', /^d.(old|new)$/)
  }
  assert.ok(count >= 300, `${count} steps`)
  assert.equal(serviceAt(table, 'one.test', '/19999/a/b/c'), 'd/new')
  assert.equal(table.certificate('h5.test'), 'd/s')
  finish(table.update(new Map([['d/big', undefined]])))
  assert.equal(serviceAt(table, 'one.test', '/19999/a/b/c'), undefined)
  assert.equal(table.certificate('h5.test'), undefined)
})
