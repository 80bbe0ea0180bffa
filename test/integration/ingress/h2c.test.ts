/** HTTP/2 in clear text: from clients of a Gateway's port, and towards backends that ask for it, as gRPC does. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import net from 'node:net'
import { after, test } from 'node:test'
import { ends, freePort, get, host, proxyTo, textOf } from './fixture.ts'

after(async () => {
  await Promise.all(ends.map((end) => end()))
})

const route = { backend: { service: 'd/s', port: 80, protocol: 'h2' } } as const

async function h2Server(handler: (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void): Promise<number> {
  const server = http2.createServer()
  const sessions = new Set<http2.ServerHttp2Session>()
  server.on('session', (session) => sessions.add(session))
  server.on('stream', (stream, headers) =>
    handler(
      stream.on('error', () => {}),
      headers,
    ),
  )
  server.listen(0, host)
  await once(server, 'listening')
  ends.push(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  return (server.address() as net.AddressInfo).port
}

/** Answers with what it got, and with trailers. */
function echoStream(stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders): void {
  void textOf(stream).then((body) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(JSON.stringify({ headers, body }))
  })
}

async function clientOf(proxy: Awaited<ReturnType<typeof proxyTo>>['proxy']): Promise<http2.ClientHttp2Session> {
  const listener = await proxy.open({ host, port: 0, publicPort: 80, gateway: 'd/g' })
  const client = http2.connect(`http://${host}:${listener.port}`)
  ends.push(() => client.destroy())
  ends.push(() => listener.close())
  return client
}

test('ING-05 a gRPC call passes in both directions with its headers, body and trailers', async () => {
  const { proxy, backend } = await proxyTo([await h2Server(echoStream)], {}, route)
  const client = await clientOf(proxy)
  for (const body of ['one', 'two '.repeat(50_000)]) {
    const call = client.request({ ':method': 'POST', ':path': '/pkg.Service/Method', te: 'trailers', 'content-type': 'application/grpc', 'x-mine': '1' })
    const trailers = once(call, 'trailers')
    call.end(body)
    const seen = JSON.parse(await textOf(call))
    assert.equal(seen.body, body)
    assert.deepEqual([seen.headers[':path'], seen.headers.te, seen.headers['x-mine'], seen.headers.host], ['/pkg.Service/Method', 'trailers', '1', undefined])
    assert.equal(((await trailers) as [http2.IncomingHttpHeaders])[0]['grpc-status'], '0')
  }
  assert.equal(backend.inFlight, 0)
})

test('ING-05 a gRPC call that fails at once has its status in headers that end the stream', async () => {
  const port = await h2Server((stream) => stream.respond({ ':status': 200, 'grpc-status': '12' }, { endStream: true }))
  const { proxy } = await proxyTo([port], {}, route)
  const call = (await clientOf(proxy)).request({ ':method': 'POST', ':path': '/pkg.Service/Method', 'content-type': 'application/grpc' })
  const [headers, flags] = (await once(call, 'response')) as [http2.IncomingHttpHeaders, number]
  assert.equal(headers['grpc-status'], '12')
  assert.equal(flags & http2.constants.NGHTTP2_FLAG_END_STREAM, http2.constants.NGHTTP2_FLAG_END_STREAM)
})

test('ING-05 a client of HTTP/1.1 reaches a backend of HTTP/2, also on the port of a Gateway, and one that refuses connections costs no request', async () => {
  const port = await h2Server(echoStream)
  const { proxy, backend } = await proxyTo([port], {}, route)
  backend.setEndpoints([await freePort(), port].map((one) => ({ ip: host, port: one })))
  const listener = await proxy.open({ host, port: 0, publicPort: 80, gateway: 'd/g' })
  ends.push(() => listener.close())
  for (const at of [proxy.httpPort, listener.port, proxy.httpPort]) {
    const { status, body } = await get(at, { method: 'POST', headers: { host: 'a.test' } }, 'x')
    assert.deepEqual([status, JSON.parse(body).body, JSON.parse(body).headers[':authority']], [200, 'x', 'a.test'])
  }
})

const [prefaceBytes, frameHeadBytes, headersFrame] = [24, 9, 1]

/** A server that answers the first request of each connection with any status: Node's own refuses to send these. */
async function rawH2Server(status: string): Promise<number> {
  const frameOf = (type: number, flags: number, stream: number, payload: Buffer) => {
    const head = Buffer.from([0, payload.length >> 8, payload.length & 0xff, type, flags, 0, 0, 0, stream])
    return Buffer.concat([head, payload])
  }
  // HPACK: a literal whose name is the eighth of the static table, `:status`.
  const answer = frameOf(1, 0x5, 1, Buffer.concat([Buffer.from([0x08, status.length]), Buffer.from(status)]))
  const server = net.createServer((socket) => {
    socket.on('error', () => {})
    socket.write(frameOf(4, 0, 0, Buffer.alloc(0)))
    let received = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      // Behind the client's preface come its settings, then the headers of the request.
      for (let at = prefaceBytes; at + frameHeadBytes <= received.length; at += frameHeadBytes + received.readUIntBE(at, 3))
        if (received[at + 3] === headersFrame) socket.write(answer)
    })
  })
  server.listen(0, host)
  await once(server, 'listening')
  ends.push(() => server.close())
  return (server.address() as net.AddressInfo).port
}

for (const status of ['099', '650'])
  test(`ING-05 a backend of HTTP/2 that answers with the status ${status} gets 502, and the proxy serves on`, async () => {
    const port = await h2Server((stream) => {
      stream.respond({ ':status': 200 })
      stream.end()
    })
    const { proxy, backend } = await proxyTo([port], {}, { ...route, responseHeaders: [] })
    const client = await clientOf(proxy)
    for (const ask of [() => get(proxy.httpPort, { path: '/odd' }).then((answer) => answer.status), () => statusOf(client, '/odd')]) {
      backend.setEndpoints([{ ip: host, port: await rawH2Server(status) }])
      assert.equal(await ask(), 502)
    }
    backend.setEndpoints([{ ip: host, port }])
    assert.equal(await statusOf(client), 200)
  })

test('ING-05 an endpoint that ends each connection after its settings gets few of them for one request, which is answered with 502', async () => {
  let connections = 0
  const server = net.createServer((socket) => {
    connections++
    ends.push(() => socket.destroy())
    socket.on('error', () => {})
    // Settings that allow no request at a time, and a GOAWAY.
    socket.write(Buffer.from([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
  })
  server.listen(0, host)
  await once(server, 'listening')
  ends.push(() => server.close())
  const { proxy, backend } = await proxyTo([(server.address() as net.AddressInfo).port], {}, route)
  assert.match(String((await get(proxy.httpPort)).status), /^50[23]$/)
  assert.ok(connections <= 3, `${connections} connections`)
  assert.equal(backend.inFlight, 0)
})

test('ING-05 clients that keep all requests open that an endpoint allows keep no other client out', async () => {
  const server = http2.createServer({ settings: { maxConcurrentStreams: 2 } })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    if (headers[':path'] === '/quick') stream.respond({ ':status': 200 }, { endStream: true })
  })
  server.listen(0, host)
  await once(server, 'listening')
  ends.push(() => server.close())
  const { proxy } = await proxyTo([(server.address() as net.AddressInfo).port], {}, route)
  const client = await clientOf(proxy)
  assert.equal(await statusOf(client, '/quick'), 200)
  const kept = Array.from({ length: 5 }, () => client.request({ ':method': 'POST', ':path': '/kept', 'content-type': 'application/grpc' }))
  for (const one of kept) one.on('error', () => {}).write('x')
  assert.equal(await statusOf(client, '/quick'), 200)
})

async function statusOf(client: http2.ClientHttp2Session, path = '/'): Promise<number> {
  const call = client.request({ ':path': path })
  const [headers] = (await once(call, 'response')) as [http2.IncomingHttpHeaders]
  call.resume()
  return Number(headers[':status'])
}

test('ING-05 a backend of HTTP/2 that answers nothing gets a 504, and one that resets the stream a 502', async () => {
  const silent = await proxyTo([await h2Server(() => {})], {}, { ...route, timeoutMs: 50 })
  assert.equal((await get(silent.proxy.httpPort)).status, 504)
  const resetting = await proxyTo([await h2Server((stream) => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR))], {}, route)
  assert.equal((await get(resetting.proxy.httpPort)).status, 502)
  assert.equal(silent.backend.inFlight + resetting.backend.inFlight, 0)
})
