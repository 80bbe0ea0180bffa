/** Backends that are asked over TLS, as a BackendTLSPolicy says, over real sockets. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import net from 'node:net'
import { after, test } from 'node:test'
import tls from 'node:tls'
import type { BackendTls, Route, SubjectAltName } from '#ingress/model/route'
import { testCertificates } from '#testing/testCertificates'
import { ends, get, host, proxyTo, textOf } from './fixture.ts'

after(async () => {
  await Promise.all(ends.map((end) => end()))
})

const pair = testCertificates('CN=backend', ['backend.test', '*.wild.test', 'spiffe://test/backend'])

interface TlsServer {
  readonly port: number
  readonly authorities: string
  /** Server names of the connections. */
  readonly names: string[]
}

async function serve(server: net.Server): Promise<TlsServer> {
  const names: string[] = []
  const sockets = new Set<net.Socket>()
  server.on('secureConnection', (socket: tls.TLSSocket) => {
    names.push(String(socket.servername))
    sockets.add(socket.on('error', () => {}))
  })
  server.on('tlsClientError', () => {})
  server.listen(0, host)
  await once(server, 'listening')
  ends.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as net.AddressInfo).port, authorities: (await pair).cert, names }
}

const answering = async () =>
  serve(
    https.createServer(await pair, (request, response) => {
      void textOf(request).then((body) => response.end(`${request.method} ${request.url} ${request.headers.host} ${body}`))
    }),
  )

let ids = 0
const tlsTo = (authorities: string | undefined, hostname = 'backend.test', ...subjectAltNames: SubjectAltName[]): BackendTls => ({
  id: String(ids++),
  hostname,
  authorities,
  subjectAltNames,
})
const routeOf = (to: BackendTls | 'unverifiable', more: object = {}): Route => ({ backend: { service: 'd/s', port: 443, tls: to, ...more } })

test('ING-05 a backend with a policy is asked over TLS with its server name, and connections are kept', async () => {
  const { port, authorities, names } = await answering()
  const { proxy, backend } = await proxyTo([port], {}, routeOf(tlsTo(authorities)))
  for (let i = 0; i < 3; i++) {
    const { status, body } = await get(proxy.httpPort, { method: 'POST', path: `/${i}`, headers: { host: 'a.test' } }, 'content')
    assert.deepEqual([status, body], [200, `POST /${i} a.test content`])
  }
  assert.deepEqual(names, ['backend.test'])
  assert.equal(backend.inFlight, 0)
})

const hostname = (value: string): SubjectAltName => ({ type: 'Hostname', value })
const uri = (value: string): SubjectAltName => ({ type: 'URI', value })
const verified: [what: string, hostname: string, altNames: SubjectAltName[], status: number][] = [
  ['of the policy’s host name', 'backend.test', [], 200],
  ['of a wildcard that covers the host name', 'a.wild.test', [], 200],
  ['of another host name', 'other.test', [], 502],
  ['with one of the wanted names, whatever the host name', 'other.test', [hostname('no.test'), hostname('backend.test')], 200],
  ['without the wanted names, though it has the host name', 'backend.test', [hostname('no.test'), uri('spiffe://test/other')], 502],
  ['with the wanted URI', 'backend.test', [uri('spiffe://test/backend')], 200],
  ['with a wildcard that covers a wanted name', 'backend.test', [hostname('b.wild.test')], 200],
  ['of an address', '127.0.0.1', [], 200],
]
for (const [what, name, altNames, wanted] of verified) {
  test(`ING-05 a backend with a certificate ${what} gets ${wanted === 200 ? 'requests' : 'none'}`, async () => {
    const { port, authorities, names } = await answering()
    const { proxy } = await proxyTo([port], {}, routeOf(tlsTo(authorities, name, ...altNames)))
    assert.equal((await get(proxy.httpPort)).status, wanted)
    if (wanted === 200) assert.deepEqual(names, [net.isIP(name) ? 'false' : name])
  })
}

test('ING-05 a backend whose certificate is of other authorities, or that speaks clear text, gets no request; an unverifiable one is not connected to', async () => {
  const { port, names } = await answering()
  const asked: string[] = []
  const clear = await serve(http.createServer((request, response) => void response.end(asked.push(String(request.url)))))
  const { cert } = await testCertificates('CN=other', ['backend.test'])
  const statusOf = async (at: number, to: BackendTls | 'unverifiable') => (await get((await proxyTo([at], {}, routeOf(to))).proxy.httpPort)).status
  assert.equal(await statusOf(port, tlsTo(cert)), 502)
  assert.equal(await statusOf(port, tlsTo(undefined)), 502)
  assert.equal(await statusOf(clear.port, tlsTo(cert)), 502)
  const before = names.length
  assert.equal(await statusOf(port, 'unverifiable'), 500)
  assert.deepEqual([names.length, asked], [before, []])
})

test('ING-05 a changed policy does not use the connections of the one before, nor what these have verified', async () => {
  const { port, authorities, names } = await answering()
  const route = { ...routeOf(tlsTo(authorities)) } as { backend: Route['backend'] }
  const { proxy } = await proxyTo([port], {}, route)
  assert.equal((await get(proxy.httpPort)).status, 200)
  route.backend = routeOf(tlsTo(authorities, 'backend.test', hostname('no.test'))).backend
  assert.equal((await get(proxy.httpPort)).status, 502)
  route.backend = routeOf(tlsTo(authorities)).backend
  assert.equal((await get(proxy.httpPort)).status, 200)
  assert.equal(names.length, 2)
})

test('ING-05 HTTP/2 reaches a backend over TLS, as gRPC does with GRPCRoutes', async () => {
  const server = http2.createSecureServer({ ...(await pair), allowHTTP1: false })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    stream.respond({ ':status': 200 })
    stream.end(`${headers[':scheme']} ${headers[':path']}`)
  })
  const { port, authorities, names } = await serve(server)
  const { proxy } = await proxyTo([port], {}, routeOf(tlsTo(authorities), { protocol: 'h2' }))
  for (let i = 0; i < 2; i++) {
    const { status, body } = await get(proxy.httpPort, { path: `/${i}` })
    assert.deepEqual([status, body], [200, `https /${i}`])
  }
  assert.deepEqual(names, ['backend.test'])
  const refusing = await proxyTo([port], {}, routeOf(tlsTo(authorities, 'other.test'), { protocol: 'h2' }))
  assert.equal((await get(refusing.proxy.httpPort)).status, 502)
})

test('ING-05 upgrades and mirrors reach a backend over TLS', async () => {
  const mirrored: string[] = []
  const server = https.createServer(await pair, (request, response) => {
    mirrored.push(String(request.url))
    response.end()
  })
  server.on('upgrade', (_request, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n')
    socket.on('error', () => {}).pipe(socket)
  })
  const { port, authorities, names } = await serve(server)
  const to = { service: 'd/s', port: 443, tls: tlsTo(authorities) }
  const mirrors = [
    { backend: to, share: 1 },
    { backend: { ...to, tls: 'unverifiable' as const }, share: 1 },
  ]
  const { proxy } = await proxyTo([port], {}, { backend: to, mirrors })
  const request = http.get({ host, port: proxy.httpPort, agent: false, headers: { connection: 'upgrade', upgrade: 'echo' } })
  const [, socket] = (await once(request, 'upgrade')) as [unknown, net.Socket]
  ends.push(() => socket.destroy())
  socket.write('hello')
  assert.equal(String((await once(socket, 'data'))[0]), 'hello')
  assert.equal((await get(proxy.httpPort, { path: '/both' })).status, 200)
  while (mirrored.length < 2) await once(server, 'request')
  assert.deepEqual(mirrored, ['/both', '/both'])
  assert.deepEqual([...new Set(names)], ['backend.test'])
})

test('ING-05 a connection whose TLS ends at the proxy is sent on over TLS of its own', async () => {
  const server = tls.createServer(await pair, (socket) => socket.on('error', () => {}).end(`server name ${socket.servername}`))
  const { port, authorities } = await serve(server)
  const { proxy, streams } = await proxyTo([port])
  const ending = await testCertificates('CN=ended')
  const listener = await proxy.openStreams({ host, port: 0, publicPort: 443, gateway: 'd/g' }, { ...ending, contextOf: () => undefined })
  ends.push(() => listener.close())
  const backend = (to: BackendTls | 'unverifiable') => ({ service: 'd/s', port: 443, tls: to })
  streams.set('a.test', { isPassthrough: false, backend: backend(tlsTo(authorities)) })
  streams.set('b.test', { isPassthrough: false, backend: backend(tlsTo(authorities, 'other.test')) })
  streams.set('c.test', { isPassthrough: false, backend: backend('unverifiable') })
  streams.set('through.test', { isPassthrough: true, backend: backend('unverifiable') })
  const read = (servername: string) =>
    textOf(tls.connect({ host, port: listener.port, servername, rejectUnauthorized: false })).catch((error: NodeJS.ErrnoException) => error.code ?? '')
  assert.equal(await read('a.test'), 'server name backend.test')
  assert.match(await read('b.test'), /^(|ECONNRESET)$/)
  assert.match(await read('c.test'), /^(|ECONNRESET)$/)
  assert.equal(await read('through.test'), 'server name through.test')
})
