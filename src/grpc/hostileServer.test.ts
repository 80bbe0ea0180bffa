/** Servers that anyone may write, such as the one behind a pod's gRPC probe: what their answers can cost. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2, { type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { connectGrpc } from './grpcConnection.ts'
import { FrameReader, frame } from './grpcWire.ts'

/** Asks a server whose answer `send` writes. */
async function answered(send: (stream: ServerHttp2Stream) => void): Promise<Buffer> {
  const server = http2.createServer().on('stream', (stream) => {
    stream.on('error', () => {})
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
    send(stream)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const connection = connectGrpc(`127.0.0.1:${(server.address() as AddressInfo).port}`)
  try {
    return await connection.unary('/t.Echo/Say', Buffer.alloc(0), { timeoutMs: 30_000 })
  } finally {
    connection.close()
    server.close()
  }
}

test('CRI-01 an answer of endless messages fails with the second one', async () => {
  let sent = 0
  const answer = answered((stream) => {
    const more = () => {
      while (!stream.destroyed && stream.write(frame(Buffer.alloc(1000)))) sent++
      if (!stream.destroyed) stream.once('drain', more)
    }
    more()
  })
  await assert.rejects(answer, { code: 'INTERNAL', message: /cardinality violation/ })
  assert.ok(sent < 10_000, `${sent} messages were taken`)
})

test('CRI-01 messages come out whole, wherever the bytes are cut', () => {
  const messages = ['', 'a', 'bc'.repeat(100), '', 'd'.repeat(70_000), 'e'].map((text) => Buffer.from(text))
  const bytes = Buffer.concat(messages.map(frame))
  for (const size of [1, 2, 4, 5, 6, 7, 64, 1000, 65_536, bytes.length]) {
    const reader = new FrameReader()
    const found: Buffer[] = []
    for (let at = 0; at < bytes.length; at += size) found.push(...reader.push(Buffer.from(bytes.subarray(at, at + size))))
    assert.deepEqual(found, messages, `chunks of ${size}`)
  }
})

test('CRI-01 a message of single bytes takes the memory of its bytes', () => {
  const reader = new FrameReader()
  const bytes = 4 << 20
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(bytes, 1)
  reader.push(prefix)
  const before = process.memoryUsage()
  const one = Buffer.alloc(1)
  for (let at = 1; at < bytes; at++) reader.push(one)
  const now = process.memoryUsage()
  const grown = now.heapUsed + now.arrayBuffers - before.heapUsed - before.arrayBuffers
  assert.ok(grown < 32 << 20, `${grown} bytes`)
  assert.equal(reader.push(one)[0]?.length, bytes)
})
