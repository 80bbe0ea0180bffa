/** ETC-06, ETC-14: connections of clients to a gRPC server: one that vanished is given up with its streams, and one that pings too often is sent away. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connectGrpc } from '#grpc/grpcConnection'
import { type GrpcServerOptions, serveGrpc } from '#grpc/grpcServer'
import type { StreamCall } from '#grpc/grpcService'
import { frame } from '#grpc/grpcWire'
import { testCertificates } from '#testing/testCertificates'
import { cuttableProxy } from '../../support/cuttableProxy.ts'
import { until } from '../../support/until.ts'

const proto = 'package t; message Text { string text = 1; } service Watch { rpc Watch(stream Text) returns (stream Text); }'
const path = '/t.Watch/Watch'
const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' }
const hour = 3_600_000

/** Counts the streams that are open; each answers what it is sent. */
async function serve(keepAlive: GrpcServerOptions['keepAlive'], tls?: GrpcServerOptions['tls']) {
  let [opened, open] = [0, 0]
  const Watch = async ({ requests, signal, send }: StreamCall<object>) => {
    opened++
    open++
    signal.addEventListener('abort', () => open--, { once: true })
    for await (const request of requests) send(request)
  }
  const documents = () => ({ status: 200, contentType: 'text/plain', body: 'ok' })
  const options = { services: [{ proto, service: 't.Watch', streams: { Watch } }], maxRequestBytes: 1024, maxConcurrentStreams: 10, documents, keepAlive, tls }
  return { server: await serveGrpc('127.0.0.1', 0, options), counts: () => ({ opened, open }) }
}

for (const name of ['without TLS', 'with TLS'])
  test(`ETC-06 ETC-14 the streams of a client that vanished without an end of its connection are freed, ${name}`, async () => {
    const pem = name === 'with TLS' ? await testCertificates() : undefined
    const { server, counts } = await serve({ intervalMs: 50, timeoutMs: 100, minTimeMs: hour }, pem)
    const proxy = await cuttableProxy(server.port)
    const connection = connectGrpc(`127.0.0.1:${proxy.port}`, pem ? { tls: { ca: pem.cert } } : {})
    const stop = new AbortController()
    const watch = connection.duplex(path, { signal: stop.signal })
    await watch.opened
    await until('the stream is open', () => counts().open === 1)
    // A client that answers pings stays.
    await sleep(400)
    assert.deepEqual(counts(), { opened: 1, open: 1 })
    proxy.cut()
    await until('the stream is freed', () => counts().open === 0)
    stop.abort()
    connection.close()
    proxy.close()
    await server.close()
  })

const ping = (session: ClientHttp2Session) => new Promise<void>((resolve) => session.ping(() => resolve()))

const pingers = [
  { name: 'pings three times too early with a call under way', minTimeMs: hour, isCalling: true, isTalking: false, isSentAway: true },
  { name: 'pings no more often than allowed with a call under way', minTimeMs: 1, isCalling: true, isTalking: false, isSentAway: false },
  { name: 'pings after each message of the server', minTimeMs: hour, isCalling: true, isTalking: true, isSentAway: false },
  { name: 'pings without a call', minTimeMs: 1, isCalling: false, isTalking: false, isSentAway: true },
]
for (const { name, minTimeMs, isCalling, isTalking, isSentAway } of pingers)
  test(`ETC-03 a client that ${name} is ${isSentAway ? 'disconnected with too_many_pings' : 'served'}`, async () => {
    const { server } = await serve({ intervalMs: 0, timeoutMs: 0, minTimeMs })
    const session = connectHttp2(`http://127.0.0.1:${server.port}`)
    let farewell: string | undefined
    session.on('goaway', (code, _, reason) => {
      farewell = `${code} ${reason}`
    })
    session.on('error', () => {})
    await once(session, 'remoteSettings')
    const call = isCalling ? session.request(headers) : undefined
    call?.on('error', () => {}).resume()
    if (call) await once(call, 'response')
    for (let count = 0; count < 6 && !session.destroyed; count++) {
      await sleep(5)
      if (isTalking && call) {
        call.write(frame(Buffer.alloc(0)))
        await once(call, 'data')
      }
      if (!session.destroyed) await Promise.race([ping(session), once(session, 'close')])
    }
    if (isSentAway) await until('the farewell has arrived', () => farewell !== undefined)
    else await sleep(50)
    assert.equal(farewell, isSentAway ? '11 too_many_pings' : undefined)
    session.destroy()
    await server.close()
  })

test('ETC-20 a connection that was ended because of its pings is opened again with a longer pause between them, and stays', async () => {
  const { server, counts } = await serve({ intervalMs: 0, timeoutMs: 0, minTimeMs: 200 })
  const connection = connectGrpc(`127.0.0.1:${server.port}`, { keepAlive: { pauseMs: 150, timeoutMs: 10_000 } })
  const stop = new AbortController()
  const follow = async () => {
    for await (const _ of connection.duplex(path, { signal: stop.signal }).messages);
  }
  await assert.rejects(follow(), { code: 'UNAVAILABLE' })
  const second = follow()
  await until('the second call is under way', () => counts().opened === 2)
  await sleep(1500)
  assert.deepEqual(counts(), { opened: 2, open: 1 })
  stop.abort()
  await second
  connection.close()
  await server.close()
})
