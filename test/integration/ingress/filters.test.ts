/** What the filters of routes do to requests and answers, over real sockets. */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import http2 from 'node:http2'
import { after, test } from 'node:test'
import type { Route } from '#ingress/model/route'
import { echo, ends, freePort, get, host, proxyTo, raw, serverOf, textOf } from './fixture.ts'

after(async () => {
  await Promise.all(ends.map((end) => end()))
})

const backend = { service: 'd/s', port: 80 }

test('ING-05 headers of requests and answers are set, added and removed, and those that frame a message stay', async () => {
  const { port } = await serverOf((request, response) => {
    response.setHeader('X-Remove', '1')
    response.setHeader('X-Set', 'backend')
    echo(request, response)
  })
  const changes = {
    set: [
      ['X-Set', 'route'],
      ['Content-Length', '1'],
      ['Host', 'evil'],
    ],
    add: [['X-Add', 'route']],
    remove: new Set(['x-remove', 'transfer-encoding']),
  } as const
  const { proxy } = await proxyTo([port], {}, { backend, requestHeaders: [changes], responseHeaders: [changes] })
  const { body, headers } = await get(proxy.httpPort, { headers: { host: 'a.test', 'X-Set': '1', 'x-add': 'client', 'X-REMOVE': '1' } })
  const seen = JSON.parse(body).headers
  assert.deepEqual([seen.host, seen['x-set'], seen['x-add'], seen['x-remove']], ['a.test', 'route', 'client,route', undefined])
  assert.deepEqual([headers['x-set'], headers['x-add'], headers['x-remove']], ['route', 'route', undefined])
})

test('ING-05 a rewritten request reaches the backend with the new host and path, and says which host the client asked for', async () => {
  const { port } = await serverOf(echo)
  const rewrite = { host: 'inner.test', path: { replaces: 'prefix', path: '/new' } } as const
  const { proxy } = await proxyTo([port], {}, { backend, pattern: { isExact: false, path: '/old' }, rewrite })
  const { body } = await get(proxy.httpPort, { path: '/old/x?q=1', headers: { host: 'a.test' } })
  const { url, headers } = JSON.parse(body)
  assert.deepEqual([url, headers.host, headers['x-forwarded-host']], ['/new/x?q=1', 'inner.test', 'a.test'])
})

test('ING-05 a redirect answers with its Location and reaches no backend', async () => {
  const { proxy } = await proxyTo([await freePort()], {}, { backend: undefined, redirect: { status: 301, scheme: 'https' } })
  const { status, headers } = await get(proxy.httpPort, { path: '/x', headers: { host: 'a.test' } })
  assert.deepEqual([status, headers.location], [301, 'https://a.test/x'])
})

test('ING-05 a route without a backend answers 500', async () => {
  const { proxy } = await proxyTo([await freePort()], {}, { backend: undefined })
  assert.equal((await get(proxy.httpPort)).status, 500)
})

test('ING-05 a preflight request is answered by the proxy, and the answer to a request names its origin only when it is allowed', async () => {
  const { port } = await serverOf((_request, response) => response.setHeader('Access-Control-Allow-Origin', '*').end('served'))
  const cors = { origins: ['https://a.test'], methods: ['PUT'], headers: [], exposed: [], withCredentials: false, maxAgeSeconds: 7 }
  const { proxy } = await proxyTo([port], {}, { backend, cors })
  const ask = (method: string, origin: string) => get(proxy.httpPort, { method, headers: { origin, 'access-control-request-method': 'PUT' } })
  const preflight = await ask('OPTIONS', 'https://a.test')
  assert.deepEqual([preflight.status, preflight.body, preflight.headers['access-control-max-age']], [204, '', '7'])
  const allowed = await ask('PUT', 'https://a.test')
  const refused = await ask('PUT', 'https://b.test')
  assert.deepEqual([allowed.body, allowed.headers['access-control-allow-origin']], ['served', 'https://a.test'])
  assert.deepEqual([refused.body, refused.headers['access-control-allow-origin']], ['served', undefined])
})

for (const [name, limits] of [
  ['whole request', { timeoutMs: 50 }],
  ['single attempt at a backend', { backendTimeoutMs: 50 }],
] as const) {
  test(`ING-05 a ${name} that takes longer than the route's timeout gets 504, and the backend sees its end`, async () => {
    let closed: Promise<unknown> | undefined
    const { port } = await serverOf((request) => {
      closed = once(request.socket, 'close')
    })
    const { proxy, backend: pool } = await proxyTo([port], {}, { backend, ...limits })
    assert.equal((await get(proxy.httpPort)).status, 504)
    await closed
    assert.equal(pool.inFlight, 0)
  })
}

test('ING-05 a mirror gets a copy of the request with its body, and one that never answers delays nothing', async () => {
  const { port } = await serverOf(echo)
  const copies = new EventEmitter()
  const copied = once(copies, 'copy')
  const mirror = await serverOf((request) => {
    void textOf(request).then((body) => copies.emit('copy', { method: request.method, url: request.url, body }))
  })
  let picks = 0
  const { proxy, backend: pool } = await proxyTo([port], {}, { backend, mirrors: [{ backend, share: 1 }] })
  // The one pool of the fixture stands for both Services: the first endpoint is the backend, the second one the mirror.
  pool.pick = () => ({ ip: host, port: picks++ === 0 ? port : mirror.port })
  const answer = await get(proxy.httpPort, { method: 'POST', path: '/x?q=1' }, 'a body')
  assert.equal(JSON.parse(answer.body).body, 'a body')
  assert.deepEqual((await copied)[0], { method: 'POST', url: '/x?q=1', body: 'a body' })
})

const bad = { set: [['X-Bad', 'a\nb']], add: [], remove: new Set<string>() } as const

for (const [what, route, path] of [
  ['a redirect to a path that no header can hold', { backend: undefined, redirect: { status: 302, path: { replaces: 'path', path: '/日本' } } }, '/'],
  ['a header of the request with a line break', { backend, requestHeaders: [bad] }, '/'],
  ['a header of the answer with a line break', { backend, responseHeaders: [bad] }, '/'],
  ['a path with a space', { backend, rewrite: { path: { replaces: 'path', path: '/a b' } } }, '/'],
] as const)
  test(`ING-05 the proxy answers with an error and serves on, a route has ${what}`, async () => {
    const { port } = await serverOf(echo)
    const { proxy, backend: pool } = await proxyTo([port], {}, route as Route)
    assert.match(String((await get(proxy.httpPort, { path })).status), /^(400|502)$/)
    const upgrade = await raw(proxy.httpPort, `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
    assert.doesNotMatch(upgrade, /X-Bad: a\n/)
    const h2 = http2.connect(`https://${host}:${proxy.httpsPort}`, { rejectUnauthorized: false })
    const call = h2.request({ ':path': path })
    call.resume().end()
    await once(call, 'close').catch(() => {})
    h2.destroy()
    assert.match(String((await get(proxy.httpPort, { path })).status), /^(400|502)$/)
    assert.equal(pool.inFlight, 0)
  })

test('ING-05 a route that cannot be followed fails its own requests with 500, upgrades too, and the proxy serves others', async () => {
  const { port } = await serverOf(echo)
  const broken = { backend, cors: { origins: 5 }, rewrite: undefined } as { backend: typeof backend; cors: unknown }
  const { proxy } = await proxyTo([port], {}, broken as unknown as Route)
  const headers = { host: 'a.test', origin: 'https://b.test' }
  assert.equal((await get(proxy.httpPort, { headers })).status, 500)
  assert.match(
    await raw(proxy.httpPort, 'GET / HTTP/1.1\r\nHost: a.test\r\nOrigin: https://b.test\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'),
    /^HTTP\/1\.1 500 /,
  )
  broken.cors = undefined
  assert.equal((await get(proxy.httpPort, { headers })).status, 200)
})
