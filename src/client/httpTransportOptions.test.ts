import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import net, { type AddressInfo, type Socket } from 'node:net'
import { after, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { isStatus } from '#api/machinery/status'
import type { Labels, Metrics } from '#base/metrics'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { testCertificates } from '#testing/testCertificates'
import type { Credentials } from './credentials.ts'
import { createHttpTransport, type HttpTransportOptions } from './httpTransport.ts'
import { meteredTransport } from './restMetrics.ts'

const closers: (() => unknown)[] = []
after(async () => {
  for (const close of closers) await close()
})
const never = new AbortController().signal
type Handler = (request: http2.Http2ServerRequest, answer: http2.Http2ServerResponse) => void

async function serve(handler: Handler, options: Partial<HttpTransportOptions> = {}, protocol: 'h2' | 'http/1.1' = 'h2') {
  const { cert, key } = await testCertificates()
  const server = http2.createSecureServer({ cert, key, allowHTTP1: true, ALPNProtocols: [protocol], requestCert: true, rejectUnauthorized: false }, handler)
  const sockets: Socket[] = []
  server.on('secureConnection', (socket: Socket) => sockets.push(socket.on('error', () => {})))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const clock = new VirtualClock()
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const transport = createHttpTransport({ server: url, clock, ...options, tls: { ca: cert, ...options.tls } })
  closers.push(async () => {
    await transport.close()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { transport, sockets, clock }
}

const json = (answer: http2.Http2ServerResponse, body: unknown, headers: Record<string, string> = {}, status = 200) => {
  answer.writeHead(status, { 'content-type': 'application/json', ...headers })
  answer.end(JSON.stringify(body))
}
const get = { method: 'GET', path: '/api' } as const

/** Credentials that a server refuses become the next of the list. */
function rotating(...list: Credentials[]) {
  let at = 0
  let refreshed = 0
  return {
    get refreshed() {
      return refreshed
    },
    get: async () => list[at] as Credentials,
    refresh: async (used: Credentials) => {
      refreshed++
      if (list[at] === used && at + 1 < list.length) at++
    },
  }
}

test('CGO-06 credentials that are refused are renewed, and the call is sent once more with others only', async () => {
  const credentials = rotating({ token: 'old' }, { token: 'new' })
  const asked: string[] = []
  const { transport, sockets } = await serve(
    (request, answer) => {
      const { authorization } = request.headers
      asked.push(String(authorization))
      json(
        answer,
        { kind: 'Status', status: 'Failure', code: 401, reason: 'Unauthorized', message: 'who?' },
        {},
        authorization === 'Bearer new' && !request.url.includes('refused') ? 200 : 401,
      )
    },
    { credentials },
  )
  await transport.request({ method: 'POST', path: '/api', body: {} })
  assert.deepEqual(asked, ['Bearer old', 'Bearer new'])
  await assert.rejects(transport.request({ method: 'GET', path: '/refused' }), (error) => isStatus(error, 'Unauthorized'))
  assert.deepEqual([asked.length, credentials.refreshed, sockets.length], [3, 2, 1], 'a token does not cost the connection')
})

test('CGO-06 a certificate that was renewed is shown on new connections; the old ones, and their watches, are broken', async () => {
  const [first, second] = [await testCertificates(), await testCertificates()]
  const credentials = rotating({ cert: first.cert, key: first.key }, { cert: `${second.cert}\n`, key: second.key })
  const peers: boolean[] = []
  const { transport, sockets } = await serve(
    (request, answer) => {
      peers.push(Object.keys((request.stream.session?.socket as TLSSocket | undefined)?.getPeerCertificate?.() ?? {}).length > 0)
      if (request.url.includes('watch')) answer.writeHead(200, { 'content-type': 'application/json' }).write('{"type":"ADDED","object":{"metadata":{}}}\n')
      else json(answer, {})
    },
    { credentials },
  )
  const events = transport.watch(get, never)[Symbol.asyncIterator]()
  await events.next()
  await credentials.refresh(await credentials.get())
  await transport.request(get)
  await assert.rejects(async () => events.next(), /cut off/)
  assert.deepEqual([sockets.length, peers], [2, [true, true]])
})

test('a request that takes too long fails, a watch may take its time', async () => {
  const { transport, clock } = await serve(
    (request, answer) => {
      if (request.url.includes('watch')) answer.writeHead(200, { 'content-type': 'application/json' }).write('{"type":"ADDED","object":{"metadata":{}}}\n')
      else arrived()
    },
    { requestTimeoutMs: 5_000 },
  )
  let arrived = () => {}
  const waiting = new Promise<void>((resolve) => {
    arrived = resolve
  })
  const late = assert.rejects(transport.request(get), /no answer came within 5000 ms/)
  const events = transport.watch(get, never)[Symbol.asyncIterator]()
  await events.next()
  await waiting
  await clock.advance(5_000)
  await late
  const left = new AbortController()
  const second = transport.watch(get, left.signal)[Symbol.asyncIterator]()
  assert.equal((await second.next()).value?.length, 1)
  left.abort(new Error('left'))
  await assert.rejects(async () => second.next(), /left/)
  await events.return?.()
})

test('long answers are compressed on request, and warnings are reported', async () => {
  const warnings: string[] = []
  const encodings: (string | undefined)[] = []
  const handler: Handler = (request, answer) => {
    encodings.push(request.headers['accept-encoding'] as string | undefined)
    answer.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip', warning: '299 - "old, \\"and\\" gone soon"' })
    answer.end(gzipSync(JSON.stringify({ big: 'x'.repeat(1000) })))
  }
  const { transport } = await serve(handler, { compression: true, onWarning: (text) => warnings.push(text) })
  const answer = await transport.request(get)
  assert.deepEqual([(answer.body as { big: string }).big.length, encodings, warnings], [1000, ['gzip'], ['old, "and" gone soon']])
  const plain = await serve((request, answer) => json(answer, { encoding: request.headers['accept-encoding'] ?? 'none' }))
  assert.deepEqual((await plain.transport.request(get)).body, { encoding: 'none' })
})

/** A proxy that records the targets of its requests. */
async function proxy(kind: 'http' | 'socks5'): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = []
  const onward = (client: net.Socket, port: number, hello: Buffer | string) => {
    const server = net.connect(port, '127.0.0.1', () => {
      client.write(hello)
      client.pipe(server).pipe(client)
    })
    for (const socket of [client, server]) socket.on('error', () => {})
  }
  const web = http.createServer().on('connect', (request: http.IncomingMessage, socket: net.Socket) => {
    asked.push(`${request.url} ${request.headers['proxy-authorization']}`)
    onward(socket, Number(request.url?.split(':')[1]), 'HTTP/1.1 200 OK\r\n\r\n')
  })
  const socks = net.createServer((socket) => {
    const steps: ((bytes: Buffer) => void)[] = [
      () => socket.write(Buffer.from([5, 2])),
      (bytes) => {
        asked.push(bytes.subarray(2, 2 + (bytes[1] ?? 0)).toString())
        socket.write(Buffer.from([1, 0]))
      },
      (bytes) => {
        const length = bytes[4] ?? 0
        asked.push(bytes.subarray(5, 5 + length).toString())
        socket.removeAllListeners('data')
        socket.pause()
        onward(socket, bytes.readUInt16BE(5 + length), Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
      },
    ]
    socket.on('error', () => {})
    socket.on('data', (bytes: Buffer) => steps.shift()?.(bytes))
  })
  const server = kind === 'http' ? web : socks
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close())
  return { url: `${kind}://me:pass@127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

for (const kind of ['http', 'socks5'] as const) {
  for (const protocol of ['h2', 'http/1.1'] as const) {
    test(`CGO-06 a server is reached through a ${kind} proxy over ${protocol}`, async () => {
      const { url, asked } = await proxy(kind)
      const { transport } = await serve((_, answer) => json(answer, { ok: true }), { tls: { proxyUrl: url } }, protocol)
      assert.deepEqual((await transport.request(get)).body, { ok: true })
      assert.match(asked.join(' '), kind === 'http' ? /^127\.0\.0\.1:\d+ Basic bWU6cGFzcw==/ : /^me 127\.0\.0\.1/)
    })
  }
}

test('CGO-06 a proxy that refuses, or is none, is named', async () => {
  const refusing = http.createServer().on('connect', (_, socket) => socket.end('HTTP/1.1 403 Forbidden\r\n\r\n'))
  refusing.listen(0, '127.0.0.1')
  await once(refusing, 'listening')
  closers.push(() => refusing.close())
  const through = async (proxyUrl: string) => (await serve((_, answer) => json(answer, {}), { tls: { proxyUrl } })).transport.request(get)
  await assert.rejects(through(`http://127.0.0.1:${(refusing.address() as AddressInfo).port}`), /the proxy answered 403/)
  await assert.rejects(through('ftp://127.0.0.1'), /none of http, https, socks5/)
})

test('CGO-06 calls are counted and timed under client-go names', async () => {
  const seen: [string, Labels | undefined, number][] = []
  const metrics: Metrics = {
    ...noMetrics,
    counter: ({ name }) => ({ inc: (labels, by = 1) => void seen.push([name, labels, by]), series: () => ({ inc: () => {} }) }),
    histogram: ({ name }) => ({ observe: (value, labels) => void seen.push([name, labels, value]), series: () => ({ observe: () => {} }) }),
  }
  const { transport, clock } = await serve((request, answer) => json(answer, { code: 404, kind: 'Status' }, {}, request.url.includes('none') ? 404 : 201))
  const metered = meteredTransport(transport, metrics, clock, 'h:1')
  await metered.request({ method: 'POST', path: '/api', body: {} })
  await assert.rejects(metered.request({ method: 'GET', path: '/none' }))
  await transport.close()
  await assert.rejects(metered.request({ method: 'GET', path: '/api' }, AbortSignal.abort(new Error('left'))))
  assert.deepEqual(seen, [
    ['rest_client_requests_total', { code: '201', method: 'POST', host: 'h:1' }, 1],
    ['rest_client_request_duration_seconds', { verb: 'POST', host: 'h:1' }, 0],
    ['rest_client_requests_total', { code: '404', method: 'GET', host: 'h:1' }, 1],
    ['rest_client_request_duration_seconds', { verb: 'GET', host: 'h:1' }, 0],
    ['rest_client_requests_total', { code: '<error>', method: 'GET', host: 'h:1' }, 1],
    ['rest_client_request_duration_seconds', { verb: 'GET', host: 'h:1' }, 0],
  ])
})
