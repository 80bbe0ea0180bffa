import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { TLSSocket } from 'node:tls'
import { testCertificates } from '#testing/testCertificates'
import { type GrpcServer, serveGrpc } from './grpcServer.ts'
import type { GrpcClient } from './grpcService.ts'
import { frame } from './grpcWire.ts'

const proto = `package t;
  message Text { string text = 1; }
  service Echo { rpc Say(Text) returns (Text); }`
let server: GrpcServer
before(async () => {
  server = await serveGrpc('127.0.0.1', 0, {
    services: [{ proto, service: 't.Echo', methods: { Say: (request: { readonly text: string }) => request } }],
    maxRequestBytes: 1024,
    maxConcurrentStreams: 10,
    documents: (path) => {
      if (path === '/health') return { status: 200, contentType: 'text/plain', body: 'ok' }
      throw new Error('the store is closed')
    },
  })
})
after(() => server.close())

test('a document that cannot be made is answered 500, and the next one is served', async () => {
  const get = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`)
    return [answer.status, await answer.text()]
  }
  assert.deepEqual(await get('/metrics'), [500, 'the store is closed\n'])
  assert.deepEqual(await get('/health'), [200, 'ok'])
})

test('a call that takes one message refuses a second one', async () => {
  const session = connectHttp2(`http://127.0.0.1:${server.port}`)
  const call = session.request({ ':method': 'POST', ':path': '/t.Echo/Say', 'content-type': 'application/grpc', te: 'trailers' })
  call.end(Buffer.concat([frame(Buffer.alloc(0)), frame(Buffer.alloc(0))]))
  const [headers] = await once(call, 'response')
  assert.equal(headers['grpc-status'], '13')
  assert.equal(headers['grpc-message'], 'the request holds more than one message')
  session.destroy()
})

const unfinished = [
  { name: 'sends nothing', sent: '' },
  { name: 'starts a request of HTTP/1 and stops', sent: 'GET /health HTTP/1.1\r\nHo' },
  { name: 'sends a part of HTTP/2’s preface', sent: 'PRI * HT' },
]
describe('unfinished', { concurrency: true }, () => {
  for (const { name, sent } of unfinished)
    test(`a connection that ${name} is closed`, { timeout: 30_000 }, async () => {
      const socket = connect(server.port, '127.0.0.1')
      socket.on('error', () => {})
      socket.resume()
      socket.write(sent)
      await once(socket, 'close')
    })
})

test('ETC-24 a client that ends none of many requests loses its connection, and the calls of others are answered', { timeout: 30_000 }, async () => {
  const requestBytes = 100_000
  const bounded = await serveGrpc('127.0.0.1', 0, {
    services: [{ proto, service: 't.Echo', methods: { Say: (request: { readonly text: string }) => request } }],
    maxRequestBytes: requestBytes,
    maxConcurrentStreams: 1_000,
    maxUnfinishedBytes: 10 * requestBytes,
    documents: () => ({ status: 200, contentType: 'text/plain', body: '' }),
  })
  const [hostile, other] = [connectHttp2(`http://127.0.0.1:${bounded.port}`), connectHttp2(`http://127.0.0.1:${bounded.port}`)]
  const begin = (session: typeof other) => {
    const call = session.request({ ':method': 'POST', ':path': '/t.Echo/Say', 'content-type': 'application/grpc', te: 'trailers' })
    return call.on('error', () => {})
  }
  const waiting = begin(other)
  waiting.write(frame(Buffer.alloc(0)))
  hostile.on('error', () => {})
  const ended = once(hostile, 'close')
  const beginning = frame(Buffer.alloc(requestBytes)).subarray(0, requestBytes - 1)
  for (let at = 0; at < 20; at++) begin(hostile).write(beginning)
  await ended
  for (let at = 0; at < 9; at++) begin(other).write(beginning)
  waiting.end()
  const [headers] = await once(waiting, 'response')
  assert.equal(headers['grpc-status'], undefined)
  assert.equal(other.destroyed, false)
  for (const session of [hostile, other]) session.destroy()
  await bounded.close()
})

test('ETC-24 the certificate of a connection is read once for all its calls, and another connection has its own', async (t) => {
  const reads = t.mock.method(TLSSocket.prototype, 'getPeerCertificate')
  const [serving, jane, joe] = (await Promise.all(['CN=server', 'CN=jane', 'CN=joe'].map((name) => testCertificates(name)))) as [Pem, Pem, Pem]
  const names: (string | undefined)[] = []
  const Say = (request: object, client: GrpcClient) => {
    names.push(client.commonName(), client.commonName())
    return request
  }
  const secure = await serveGrpc('127.0.0.1', 0, {
    services: [{ proto, service: 't.Echo', methods: { Say } }],
    maxRequestBytes: 1024,
    maxConcurrentStreams: 10,
    documents: () => ({ status: 200, contentType: 'text/plain', body: '' }),
    tls: { ...serving, clientCa: `${jane.cert}\n${joe.cert}` },
  })
  for (const client of [jane, joe]) {
    const session = connectHttp2(`https://127.0.0.1:${secure.port}`, { ...client, ca: serving.cert })
    for (let at = 0; at < 2; at++) {
      const call = session.request({ ':method': 'POST', ':path': '/t.Echo/Say', 'content-type': 'application/grpc', te: 'trailers' })
      call.end(frame(Buffer.alloc(0)))
      await once(call, 'response')
    }
    session.destroy()
  }
  await secure.close()
  assert.deepEqual(names, [...Array(4).fill('jane'), ...Array(4).fill('joe')])
  // Node's client reads the server's certificate with an argument.
  assert.equal(reads.mock.calls.filter((call) => call.arguments.length === 0).length, 2)
})

type Pem = Awaited<ReturnType<typeof testCertificates>>
