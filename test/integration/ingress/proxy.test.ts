/** Requests in clear text through the proxy, and tunnels. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { after, test } from 'node:test'
import { realClock as clock } from '#testing/realClock'
import { echo, ends, freePort, get, host, proxyTo, raw, serverOf, textOf } from './fixture.ts'

after(async () => {
  await Promise.all(ends.map((end) => end()))
})

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

test('ING-02 an upgrade to HTTP/2 in clear text is not passed on, and the request is served with its body, as the next one of the connection is', async () => {
  const { port } = await serverOf(echo)
  const { proxy, backend } = await proxyTo([port])
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  ends.push(() => agent.destroy())
  const headers = { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMA' }
  const sockets = new Set<unknown>()
  for (const body of ['first', 'second '.repeat(20_000)]) {
    const request = http.request({ host, port: proxy.httpPort, agent, method: 'POST', headers })
    request.once('socket', (socket) => sockets.add(socket))
    request.end(body)
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    const seen = JSON.parse(await textOf(response))
    assert.deepEqual([response.statusCode, seen.method, seen.body, seen.headers.upgrade, seen.headers['http2-settings']], [200, 'POST', body, undefined, undefined])
  }
  assert.equal(sockets.size, 1)
  assert.equal(backend.inFlight, 0)
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

/** A backend that answers each request with these bytes. */
async function answering(text: string): Promise<number> {
  const server = net.createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => socket.write(text))
  })
  server.listen(0, host)
  await once(server, 'listening')
  ends.push(() => server.close())
  return (server.address() as net.AddressInfo).port
}

const noFinalAnswers = [
  { name: 'a protocol that the client has not asked for', text: 'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n' },
  { name: 'a status 101 without a protocol', text: 'HTTP/1.1 101 X\r\n\r\n' },
  { name: 'a status below 100', text: 'HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n' },
]
for (const { name, text } of noFinalAnswers) {
  test(`ING-02 a request is answered with 502, when the backend answers with ${name}`, async () => {
    const { proxy, backend } = await proxyTo([await answering(text)], { idleTimeoutMs: 2000 })
    assert.equal((await get(proxy.httpPort)).status, 502)
    assert.equal(backend.inFlight, 0)
  })
}

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

const shortLimits = { headersTimeoutMs: 300, idleTimeoutMs: 600 }

test('ING-02 a client that sends its headers too slowly is cut', async () => {
  const { port } = await serverOf(echo)
  const { proxy } = await proxyTo([port], shortLimits)
  assert.equal(await raw(proxy.httpPort, 'GET / HTTP/1.1\r\nHost: a\r\nX: '), '')
})

test('ING-02 the backend gets the whole body of a client that takes longer than every limit and is never silent for as long', async () => {
  const { port } = await serverOf(echo)
  const { proxy } = await proxyTo([port], shortLimits)
  const parts = ['one ', 'two ', 'three ', 'four ', 'five ', 'six']
  const request = http.request({ host, port: proxy.httpPort, method: 'POST', agent: false })
  for (const part of parts) {
    request.write(part)
    await clock.sleep(shortLimits.idleTimeoutMs / 3)
  }
  request.end()
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  const { body: received } = JSON.parse(await textOf(response))
  assert.equal(received, parts.join(''))
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

test('ING-02 what a client sends before the backend agrees to an upgrade follows in order', async () => {
  const { proxy } = await proxyTo([await upgradingServer()])
  const socket = net.connect(proxy.httpPort, host)
  socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nabc')
  socket.write('def')
  let seen = ''
  socket.on('data', (data) => {
    seen += data
  })
  while (!seen.endsWith('F')) await once(socket, 'data')
  assert.match(seen, /^HTTP\/1.1 101 /)
  assert.equal(seen.slice(seen.indexOf('\r\n\r\n') + 4), 'helloABCDEF')
  socket.destroy()
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
