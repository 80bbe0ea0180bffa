/** Clients that do not read: the buffers for them are bounded, and other clients are served. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import test from 'node:test'
import { frameType, rstStreamFrame, setting, windowUpdateFrame } from '#apiserver/server/http2/frames'
import { frame, get, headers, hello, startServer, TestPeer } from './peer.ts'

const chunk = Buffer.alloc(64 * 1024, 'x')

/** A body without end; `made` counts the bytes that were asked for. */
function endless() {
  const counter = { made: 0, destroyed: false }
  const body = new Readable({
    highWaterMark: chunk.length,
    read() {
      counter.made += chunk.length
      this.push(chunk)
    },
    destroy(error, done) {
      counter.destroyed = true
      done(error)
    },
  })
  return { counter, body }
}

test('API-09 the producer waits for a window that stays shut, and ends with the stream', { timeout: 20_000 }, async () => {
  const { counter, body } = endless()
  const server = await startServer(({ path }) =>
    path === '/endless' ? { type: 'stream', status: 200, headers: {}, body } : { type: 'bytes', status: 200, contentType: 'a/b', bytes: Buffer.from('x') },
  )
  const peer = await TestPeer.connect(server, hello([[setting.initialWindowSize, 100_000]]))
  peer.send(windowUpdateFrame(0, 2 ** 30), headers(1, get('/endless')))
  await peer.wait(() => peer.body(1).length === 100_000)
  for (let stream = 3; stream < 40; stream += 2) await peer.send(headers(stream, get('/'))).end(stream)
  assert.ok(counter.made < 100_000 + 6 * chunk.length, `${counter.made} bytes were made`)
  peer.send(windowUpdateFrame(1, 50_000))
  await peer.wait(() => peer.body(1).length === 150_000)
  peer.send(rstStreamFrame(1, 8), headers(41, get('/')))
  await peer.end(41)
  assert.ok(counter.destroyed)
  peer.socket.destroy()
  await server.close()
})

test('API-09 the producer waits for a socket that is not read', { timeout: 20_000 }, async () => {
  const { counter, body } = endless()
  const server = await startServer(() => ({ type: 'stream', status: 200, headers: {}, body }))
  const peer = await TestPeer.connect(server, hello([[setting.initialWindowSize, 2 ** 31 - 1]]))
  peer.send(windowUpdateFrame(0, 2 ** 30))
  await peer.of(frameType.settings, 0)
  peer.socket.pause()
  peer.send(headers(1, get('/')))
  let before = -1
  while (before !== counter.made || counter.made === 0) {
    before = counter.made
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  // A megabyte in the socket's queue, and what the kernels hold of both sides.
  assert.ok(counter.made < 20 * 1024 * 1024, `${counter.made} bytes were made`)
  peer.socket.destroy()
  await server.close()
})

test('API-23 a client that lets answers to its pings pile up is cut off', { timeout: 20_000 }, async () => {
  const server = await startServer(() => ({ type: 'bytes', status: 200, contentType: 'a/b', bytes: Buffer.alloc(30_000_000) }))
  const peer = await TestPeer.connect(server, hello([[setting.initialWindowSize, 2 ** 31 - 1]]))
  peer.send(windowUpdateFrame(0, 2 ** 30), headers(1, get('/')))
  peer.socket.pause()
  const pings = Buffer.concat(Array.from({ length: 1_000 }, () => frame(frameType.ping, 0, 0, '12345678')))
  for (let sent = 0; sent < 15 && !peer.isClosed; sent++) peer.send(pings)
  peer.socket.resume()
  await peer.closed()
  assert.ok(peer.body(1).length < 30_000_000)
  await server.close()
})
