/** The proxy over real sockets of the loopback interface. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import net from 'node:net'
import { after, before, test } from 'node:test'
import tls from 'node:tls'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { Backend } from '#ingress/proxy/backend'
import { createCertificateReader } from '#ingress/proxy/certificates'
import type { ProxyLimits } from '#ingress/proxy/config'
import { type RunningProxy, startProxy } from '#ingress/proxy/proxy'
import { realClock as clock } from '#testing/realClock'
import { testCertificates } from '#testing/testCertificates'

const host = '127.0.0.1'
const route = { ingress: 'd/i', backend: { service: 'd/s', port: 80 } }

/** A backend's server with its port, ended after the tests. */
const ends: (() => unknown)[] = []
async function serverOf(handler: http.RequestListener): Promise<{ server: http.Server; port: number }> {
  const server = http.createServer(handler)
  server.listen(0, host)
  await once(server, 'listening')
  ends.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return { server, port: (server.address() as net.AddressInfo).port }
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

interface Fixture {
  readonly proxy: RunningProxy
  readonly backend: Backend
  readonly contexts: Map<string, tls.SecureContext>
}

let certificate: { cert: string; key: string }
async function proxyTo(ports: readonly number[], limits: Partial<ProxyLimits> = {}): Promise<Fixture> {
  const backend = new Backend(clock)
  backend.setEndpoints(ports.map((port) => ({ ip: host, port })))
  const contexts = new Map<string, tls.SecureContext>()
  const router = { route: (name: string) => (name === 'unknown.test' ? undefined : route), backendOf: () => backend }
  const proxy = await startProxy(
    { router, clock, log: noLog, metrics: noMetrics },
    {
      http: { host, port: 0, publicPort: 80 },
      https: { host, port: 0, publicPort: 443 },
      tls: { ...certificate, contextOf: (name) => contexts.get(name) },
      limits: { drainMs: 1500, ...limits },
    },
  )
  ends.push(() => proxy.close())
  return { proxy, backend, contexts }
}

before(async () => {
  certificate = await testCertificates('CN=default')
})
after(async () => {
  await Promise.all(ends.map((end) => end()))
})

interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

async function get(port: number, options: http.RequestOptions = {}, body?: string): Promise<Answer> {
  const request = (options.protocol === 'https:' ? https : http).request({ host, port, agent: false, ...options })
  request.end(body)
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  return { status: response.statusCode ?? 0, headers: response.headers, body: await textOf(response) }
}

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** What a raw request gets until the connection ends. */
async function raw(port: number, text: string): Promise<string> {
  const socket = net.connect(port, host)
  socket.on('error', () => {})
  socket.write(text)
  return textOf(socket)
}

const echo: http.RequestListener = (request, response) => {
  response.setHeader('content-type', 'application/json')
  const end = (body: string) => response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }))
  textOf(request).then(end, () => response.destroy())
}

test('ING-02 the backend gets the request as it was sent, with headers of the proxy that a client cannot set', async () => {
  const { port } = await serverOf(echo)
  const { proxy } = await proxyTo([port])
  const { status, body } = await get(proxy.httpPort, {
    path: '/a/%2e%2e/b?q=%20',
    headers: {
      Host: 'a.test:8080',
      'X-Forwarded-For': '6.6.6.6',
      X_Real_IP: '6.6.6.6',
      'X-Forwarded-Proto': 'https',
      Forwarded: 'for=6.6.6.6',
      Proxy: 'evil',
      Connection: 'close, X-Mine, Content-Length',
      'X-Mine': 'one hop',
      'X-Kept': 'é'.normalize(),
      Cookie: 'a=1',
    },
  })
  const seen = JSON.parse(body)
  assert.equal(status, 200)
  assert.equal(seen.url, '/a/%2e%2e/b?q=%20')
  const {
    host: authority,
    'x-forwarded-for': from,
    'x-real-ip': ip,
    'x-forwarded-proto': proto,
    'x-forwarded-port': at,
    'x-forwarded-host': asked,
  } = seen.headers
  assert.deepEqual([authority, from, ip, proto, at, asked], ['a.test:8080', host, host, 'http', '80', 'a.test:8080'])
  for (const name of ['x_real_ip', 'forwarded', 'proxy', 'x-mine']) assert.equal(seen.headers[name], undefined, name)
  assert.deepEqual([seen.headers['x-kept'], seen.headers.cookie], ['é', 'a=1'])
})

test('ING-02 a request without a route gets 404 as a default backend answers, one without endpoints 503', async () => {
  const { port } = await serverOf(echo)
  const { proxy, backend } = await proxyTo([port])
  const unknown = await get(proxy.httpPort, { headers: { host: 'unknown.test' } })
  assert.deepEqual([unknown.status, unknown.body], [404, 'default backend - 404'])
  backend.setEndpoints([])
  assert.equal((await get(proxy.httpPort)).status, 503)
})

/** Requests that two servers in a row could read differently. */
const smuggled: [name: string, text: string, status: number][] = [
  [
    'Content-Length and Transfer-Encoding',
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n',
    400,
  ],
  ['two different lengths', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde', 400],
  ['two equal lengths', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nabcd', 400],
  ['a length that is no number', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +4\r\n\r\nabcd', 400],
  ['an encoding after chunked', 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n', 400],
  ['a chunk size that is no number', 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n', 400],
  ['a space before the colon', 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 4\r\n\r\nabcd', 400],
  ['two hosts', 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400],
  ['a host of the target that is not the header’s', 'GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n', 400],
  ['no host', 'GET / HTTP/1.1\r\n\r\n', 400],
  ['a path above the root', 'GET /../x HTTP/1.1\r\nHost: a\r\n\r\n', 400],
  ['the method TRACE', 'TRACE / HTTP/1.1\r\nHost: a\r\n\r\n', 405],
  ['the method CONNECT', 'CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n', 405],
  ['headers of more than 32 KiB', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(33_000)}\r\n\r\n`, 431],
  ['a body with an upgrade', 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 4\r\n\r\nabcd', 400],
  ['four passes through this proxy', `GET / HTTP/1.1\r\nHost: a\r\nCDN-Loop: ${'skiff-ingress, '.repeat(4)}x\r\n\r\n`, 508],
]
for (const [name, text, status] of smuggled) {
  test(`ING-02 a request is refused with ${status} and reaches no backend, with ${name}`, async () => {
    let reached = 0
    const { port } = await serverOf((request, response) => {
      // A backend may see the head of a body that turns out to be badly framed, but never a whole request.
      request.on('end', () => reached++)
      request.resume()
      request.on('end', () => response.end('whole'))
    })
    const { proxy } = await proxyTo([port])
    const answer = await raw(proxy.httpPort, text.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n').replace(/(Upgrade\r\n.*)\r\nConnection: close/s, '$1'))
    assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `))
    assert.equal(reached, 0)
  })
}

test('ING-02 an upgrade to HTTP/2 in clear text is not passed on, and the request is answered', async () => {
  const { port } = await serverOf(echo)
  const { proxy, backend } = await proxyTo([port])
  const answer = await raw(
    proxy.httpPort,
    'GET /h2c HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n\r\n',
  )
  assert.match(answer, /^HTTP\/1.1 200 /)
  const seen = JSON.parse(answer.slice(answer.indexOf('{')).replace(/\r\n.*$/s, ''))
  assert.equal(seen.headers.upgrade, undefined)
  while (backend.inFlight > 0) await clock.sleep(5)
})

test('ING-02 endpoints take turns, and one that refuses connections costs no request', async () => {
  const named = (name: string) => serverOf((_request, response) => response.end(name))
  const [a, b] = await Promise.all([named('a'), named('b')])
  const { proxy, backend } = await proxyTo([a.port, b.port])
  const ask = async () => (await get(proxy.httpPort)).body
  assert.deepEqual([await ask(), await ask(), await ask(), await ask()].sort(), ['a', 'a', 'b', 'b'])
  const gone = await freePort()
  backend.setEndpoints([a.port, gone].map((port) => ({ ip: host, port })))
  for (let i = 0; i < 6; i++) assert.equal((await get(proxy.httpPort, { method: 'POST' }, 'x')).body, 'a')
  backend.setEndpoints([{ ip: host, port: gone }])
  assert.equal((await get(proxy.httpPort)).status, 502)
})

test('ING-02 a kept connection that the backend closes under a request costs no GET, and a POST gets 502', async () => {
  let served = 0
  const { port } = await serverOf((request, response) => {
    // Every second request of a connection finds it closed.
    if (served++ % 2 === 1) request.socket.destroy()
    else response.end('ok')
  })
  const { proxy } = await proxyTo([port])
  assert.equal((await get(proxy.httpPort)).body, 'ok')
  assert.equal((await get(proxy.httpPort)).body, 'ok')
  assert.equal(served, 3)
  assert.equal((await get(proxy.httpPort, { method: 'POST' }, 'x')).status, 502)
})

test('ING-02 an endpoint that is silent gets its request answered with 504', async () => {
  const { port } = await serverOf(() => {})
  const silent = await proxyTo([port], { readTimeoutMs: 100 })
  assert.equal((await get(silent.proxy.httpPort)).status, 504)
})

test('ING-02 an answer that ends early does not look whole to the client', async () => {
  const { port } = await serverOf((_request, response) => {
    response.writeHead(200, { 'content-length': 1000 })
    response.write('half', () => response.destroy())
  })
  const chunked = await serverOf((_request, response) => {
    response.write('half', () => response.destroy())
  })
  for (const one of [port, chunked.port]) {
    const { proxy } = await proxyTo([one])
    await assert.rejects(get(proxy.httpPort), /aborted|hang up|terminated|ECONNRESET/)
  }
})

/** Writes until the other side has taken nothing for half a second. @returns the bytes that were taken */
async function writeUntilStalled(stream: NodeJS.WritableStream, socket: net.Socket, most: number): Promise<number> {
  const chunk = Buffer.alloc(2 ** 20, 'x')
  while (socket.bytesWritten < most) {
    if (stream.write(chunk)) continue
    const drained = await Promise.race([once(stream, 'drain').then(() => true), clock.sleep(500).then(() => false)])
    if (!drained) break
  }
  return socket.bytesWritten
}

const muchBytes = 256 * 2 ** 20

test('ING-02 a backend that does not read stops the client that sends', async () => {
  let received = 0
  let release = () => {}
  const { port } = await serverOf((request, response) => {
    release = () => {
      request.on('data', (chunk: Buffer) => {
        received += chunk.length
      })
      request.on('end', () => response.end('done'))
    }
  })
  const { proxy } = await proxyTo([port])
  const request = http.request({ host, port: proxy.httpPort, method: 'POST', agent: false })
  request.flushHeaders()
  const [socket] = (await once(request, 'socket')) as [net.Socket]
  await once(socket, 'connect')
  const taken = await writeUntilStalled(request, socket, muchBytes)
  assert.ok(taken < muchBytes / 4, `${taken} bytes`)
  release()
  request.end()
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  assert.equal(await textOf(response), 'done')
  assert.ok(received >= 2 ** 20)
})

test('ING-02 a client that does not read stops the backend that answers', async () => {
  let taken: Promise<number> | undefined
  let finish = () => {}
  const { port } = await serverOf((request, response) => {
    taken = writeUntilStalled(response, request.socket, muchBytes)
    finish = () => response.end('done')
  })
  const { proxy } = await proxyTo([port])
  const request = http.get({ host, port: proxy.httpPort, agent: false })
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  const bytes = (await taken) ?? muchBytes
  assert.ok(bytes < muchBytes / 4, `${bytes} bytes`)
  finish()
  assert.match(await textOf(response), /xdone$/)
})

test('ING-02 a body above the limit gets 413, by its length and by its chunks', async () => {
  const { port } = await serverOf(echo)
  const { proxy } = await proxyTo([port], { maxBodyBytes: 1000 })
  assert.equal((await get(proxy.httpPort, { method: 'POST', headers: { 'content-length': 1001 } }, 'x'.repeat(1001))).status, 413)
  assert.equal((await get(proxy.httpPort, { method: 'POST', headers: { 'transfer-encoding': 'chunked' } }, 'x'.repeat(5000))).status, 413)
  assert.equal((await get(proxy.httpPort, { method: 'POST', headers: { 'transfer-encoding': 'chunked' } }, 'x'.repeat(1000))).status, 200)
})

test('ING-02 a client that sends its headers too slowly is cut, one that keeps sending a body is not', async () => {
  const { port } = await serverOf(echo)
  const { proxy } = await proxyTo([port], { headersTimeoutMs: 300, idleTimeoutMs: 600 })
  const started = Date.now()
  assert.equal(await raw(proxy.httpPort, 'GET / HTTP/1.1\r\nHost: a\r\nX: '), '')
  assert.ok(Date.now() - started < 5000)
  const request = http.request({ host, port: proxy.httpPort, method: 'POST', agent: false })
  for (let i = 0; i < 6; i++) {
    request.write('x')
    await clock.sleep(200)
  }
  request.end()
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  assert.equal(JSON.parse(await textOf(response)).body, 'xxxxxx')
})

test('ING-02 a port of a Service has no more requests in flight than the limit', async () => {
  const { port } = await serverOf((_request, response) => void setTimeout(() => response.end('ok'), 200))
  const { proxy, backend } = await proxyTo([port], { maxInFlight: 2 })
  const statuses = await Promise.all([1, 2, 3].map(async () => (await get(proxy.httpPort)).status))
  assert.deepEqual(statuses.sort(), [200, 200, 503])
  assert.equal(backend.inFlight, 0)
})

/** A backend that agrees to every upgrade, greets, and echoes in capitals. */
async function upgradingServer(): Promise<number> {
  const { server, port } = await serverOf((_request, response) => response.writeHead(426).end('upgrade needed'))
  server.on('upgrade', (request: http.IncomingMessage, socket: net.Socket) => {
    if (request.url === '/no') {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno')
      return
    }
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nhello')
    socket.on('data', (data) => socket.write(String(data).toUpperCase()))
    socket.on('error', () => {})
    socket.on('end', () => socket.end())
  })
  return port
}

test('ING-02 a WebSocket is tunnelled once the backend agrees, in both directions, until one side ends', async () => {
  const { proxy, backend } = await proxyTo([await upgradingServer()])
  const request = http.request({ host, port: proxy.httpPort, agent: false, headers: { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'k' } })
  request.end()
  const [response, socket, head] = (await once(request, 'upgrade')) as [http.IncomingMessage, net.Socket, Buffer]
  assert.deepEqual([response.statusCode, response.headers.upgrade, response.headers['sec-websocket-accept']], [101, 'websocket', 'x'])
  let seen = String(head)
  socket.on('data', (data) => {
    seen += data
  })
  socket.write('abc')
  while (seen !== 'helloABC') await once(socket, 'data')
  assert.equal(backend.inFlight, 1)
  socket.end()
  await once(socket, 'close')
  while (backend.inFlight > 0) await clock.sleep(5)
})

test('ING-02 an upgrade that the backend refuses gets the backend’s answer and no tunnel', async () => {
  const { proxy, backend } = await proxyTo([await upgradingServer()])
  const answer = await raw(
    proxy.httpPort,
    'GET /no HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /secret HTTP/1.1\r\nHost: a\r\n\r\n',
  )
  assert.match(answer, /^HTTP\/1.1 403 Forbidden\r\n/)
  assert.match(answer, /no$/)
  while (backend.inFlight > 0) await clock.sleep(5)
})

const trusting = { rejectUnauthorized: false }

test('ING-02 an HTTP/2 client gets what an HTTP/1.1 client gets, many requests over one connection', async () => {
  const { port } = await serverOf(echo)
  const { proxy, backend } = await proxyTo([port])
  const session = http2.connect(`https://${host}:${proxy.httpsPort}`, trusting)
  ends.push(() => session.destroy())
  const ask = async (index: number) => {
    const stream = session.request({ ':method': 'POST', ':path': `/${index}?x`, ':authority': 'a.test', 'x-forwarded-for': '6.6.6.6', cookie: ['a=1', 'b=2'] })
    stream.end(`body ${index}`)
    const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
    return { status: Number(headers[':status']), ...JSON.parse(await textOf(stream)) }
  }
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(i)))
  for (const [i, { status, url, body, headers, method }] of answers.entries()) {
    assert.deepEqual([status, url, body, method], [200, `/${i}?x`, `body ${i}`, 'POST'])
    assert.deepEqual([headers.host, headers['x-forwarded-for'], headers['x-forwarded-proto'], headers['x-forwarded-port']], ['a.test', host, 'https', '443'])
    assert.equal(headers.cookie, 'a=1; b=2')
  }
  assert.equal(backend.inFlight, 0)
})

test('ING-02 an HTTP/2 stream is reset when the backend’s answer ends early', async () => {
  const { port } = await serverOf((_request, response) => {
    response.writeHead(200, { 'content-length': 1000 })
    response.write('half', () => response.destroy())
  })
  const { proxy } = await proxyTo([port])
  const session = http2.connect(`https://${host}:${proxy.httpsPort}`, trusting)
  ends.push(() => session.destroy())
  const stream = session.request({ ':path': '/' })
  await assert.rejects(textOf(stream), /NGHTTP2_INTERNAL_ERROR/)
})

async function namePresented(port: number, servername?: string): Promise<string> {
  const socket = tls.connect({ host, port, ...trusting, ...(servername ? { servername } : {}) })
  await once(socket, 'secureConnect')
  const { CN } = socket.getPeerCertificate().subject
  socket.destroy()
  return String(CN)
}

test('ING-02 the certificate follows the server name and changes without a new listener; open connections stay', async () => {
  const { port } = await serverOf(echo)
  const { proxy, contexts } = await proxyTo([port])
  const secret = async (name: string) => {
    const { cert, key } = await testCertificates(`CN=${name}`)
    const data = { 'tls.crt': Buffer.from(cert).toString('base64'), 'tls.key': Buffer.from(key).toString('base64') }
    return { apiVersion: 'v1', kind: 'Secret', metadata: { name }, type: 'kubernetes.io/tls', data }
  }
  const reader = createCertificateReader()
  const { context, problem } = reader.load(await secret('one'))
  assert.equal(problem, undefined)
  contexts.set('a.test', context as tls.SecureContext)
  assert.equal(await namePresented(proxy.httpsPort, 'a.test'), 'one')
  assert.equal(await namePresented(proxy.httpsPort, 'b.test'), 'default')
  assert.equal(await namePresented(proxy.httpsPort), 'default')
  const agent = new https.Agent({ keepAlive: true, ...trusting, servername: 'a.test' })
  ends.push(() => agent.destroy())
  const ask = () => get(proxy.httpsPort, { agent, protocol: 'https:' })
  assert.equal((await ask()).status, 200)
  contexts.set('a.test', reader.load(await secret('two')).context as tls.SecureContext)
  assert.equal(await namePresented(proxy.httpsPort, 'a.test'), 'two')
  assert.equal((await ask()).status, 200)
})

const pem = <T extends 'spki' | 'pkcs8'>(type: T) => ({ type, format: 'pem' }) as const

test('ING-02 a Secret that holds no certificate with its key is a problem', async () => {
  const [one, two] = await Promise.all([testCertificates('CN=one'), testCertificates('CN=two')])
  const encoded = (text: string) => Buffer.from(text).toString('base64')
  const secret = (data: Record<string, string>, type = 'kubernetes.io/tls') => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, type, data })
  const { privateKey: largeKey } = generateKeyPairSync('rsa', { modulusLength: 4608, publicKeyEncoding: pem('spki'), privateKeyEncoding: pem('pkcs8') })
  const cases = [
    { secret: secret({ 'tls.crt': encoded(one.cert), 'tls.key': encoded(two.key) }), want: /does not belong/ },
    { secret: secret({ 'tls.crt': encoded('x'), 'tls.key': encoded(two.key) }), want: /cannot be read/ },
    { secret: secret({}), want: /cannot be read/ },
    { secret: secret({ 'tls.crt': encoded(one.cert), 'tls.key': encoded(one.key) }, 'Opaque'), want: /its type is not/ },
    { secret: secret({ 'tls.crt': encoded(one.cert), 'tls.key': encoded(largeKey) }), want: /more than 4096 bits/ },
    { secret: secret({ 'tls.crt': 'A'.repeat(200_000), 'tls.key': '' }), want: /too large/ },
  ]
  for (const { secret: one_, want } of cases) assert.match(createCertificateReader().load(one_).problem ?? '', want)
})

test('ING-02 a stop lets requests in flight end, tells clients that the connection ends, and takes no new connection', async () => {
  const { port } = await serverOf((_request, response) => void setTimeout(() => response.end('late'), 300))
  const { proxy } = await proxyTo([port])
  const first = get(proxy.httpPort, { agent: new http.Agent({ keepAlive: true }) })
  const session = http2.connect(`https://${host}:${proxy.httpsPort}`, trusting)
  const stream = session.request({ ':path': '/' })
  const second = textOf(stream)
  const goaway = once(session, 'close')
  await clock.sleep(100)
  const closed = proxy.close()
  await clock.sleep(20)
  await assert.rejects(get(proxy.httpPort), /ECONNREFUSED|ECONNRESET/)
  const { status, body, headers } = await first
  assert.deepEqual([status, body, headers.connection], [200, 'late', 'close'])
  assert.equal(await second, 'late')
  await goaway
  await closed
})
