/** ETC-20: pings on the connection to a member of etcd: a busy client does not take its server for dead, and a cut connection is noticed. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { connectGrpc } from '#grpc/grpcConnection'
import { GrpcError } from '#grpc/grpcError'
import { cuttableProxy } from '../../support/cuttableProxy.ts'

const request = Buffer.from('request')
const never = new AbortController().signal

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** A server in a thread of its own, which answers while this one is busy. */
const threadProgram = `
const { parentPort } = require('node:worker_threads')
const server = require('node:http2').createServer()
server.on('stream', (stream) => stream.on('error', () => {}))
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
`

function keepBusy(ms: number): void {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs; );
}

test('ETC-20 a long turn of the event loop does not make a connection look dead whose server has answered the ping', async () => {
  const thread = new Worker(threadProgram, { eval: true })
  const [port] = await once(thread, 'message')
  const connection = connectGrpc(`127.0.0.1:${port}`, { keepAlive: { pauseMs: 20, timeoutMs: 100 } })
  const stop = new AbortController()
  let failure: unknown
  const waiting = connection.unary('/wait', request, { timeoutMs: 60_000, signal: stop.signal }).catch((error) => {
    if (!stop.signal.aborted) failure = error
  })
  await connection.ready(never)
  for (let turn = 0; turn < 8; turn++) {
    await sleep(5)
    keepBusy(300)
  }
  await sleep(150)
  stop.abort(new Error('enough'))
  await waiting
  connection.close()
  await thread.terminate()
  assert.equal(failure, undefined)
})

test('ETC-20 a server that stops answering pings is given up, and its calls are not marked as unsent', async () => {
  const inner = createHttp2Server()
  inner.on('stream', (stream) => stream.on('error', () => {}))
  const proxy = await cuttableProxy(await listen(inner))
  const connection = connectGrpc(`127.0.0.1:${proxy.port}`, { keepAlive: { pauseMs: 20, timeoutMs: 100 } })
  const waiting = connection.unary('/wait', request, { timeoutMs: 60_000 })
  await connection.ready(never)
  await sleep(50)
  proxy.cut()
  await assert.rejects(waiting, (error) => error instanceof GrpcError && error.code === 'UNAVAILABLE' && !error.isUnsent)
  connection.close()
  proxy.close()
  inner.close()
})
