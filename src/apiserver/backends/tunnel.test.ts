import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect as connectTo, createServer, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { deadlineScope } from '#base/abortScope'
import { VirtualClock } from '#base/virtualClock'
import { realClock } from '#testing/realClock'
import type { ServerRequest } from '../core/request.ts'
import { tunnel } from './tunnel.ts'

const head = 'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: x\r\n\r\n'
const request = { method: 'GET', path: '/', headers: { upgrade: 'x', connection: 'Upgrade' }, remoteAddress: '' } as unknown as ServerRequest

/** A client that has read its answer's head, and reads no more until the test continues. */
class SlowClient extends Duplex {
  received = ''
  #waiting: (() => void) | undefined
  #isSlow = true
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.received += chunk.toString('latin1')
    if (this.#isSlow && this.received.length > head.length) this.#waiting = done
    else done()
  }
  override _read(): void {}
  takeAll(): void {
    this.#isSlow = false
    this.#waiting?.()
  }
}

const bytes = 10_000

test('API-29 the last bytes of a backend that resets its connection reach a slow client', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = new SlowClient({ highWaterMark: 1024 })
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const answer = tunnel(request, { host: '127.0.0.1', port: (server.address() as AddressInfo).port, path: '/' })
  assert.equal(answer.type, 'tunnel')
  const joined = answer.type === 'tunnel' ? answer.connect(client, Buffer.alloc(0), realClock) : Promise.resolve()
  const [backend] = await accepted
  await once(backend, 'data')
  await new Promise<void>((resolve) => backend.write(head, () => resolve()))
  await new Promise<void>((resolve) => backend.write('y'.repeat(bytes), () => resolve()))
  while (client.received.length === head.length || client.received === '') await new Promise((resolve) => setImmediate(resolve))
  backend.resetAndDestroy()
  // The reset is noticed in one of the next rounds, or when the client reads more.
  for (let round = 0; round < 20; round++) await new Promise((resolve) => setImmediate(resolve))
  client.takeAll()
  await once(client, 'finish')
  assert.equal(client.received.length, head.length + bytes)
  client.destroy()
  await joined
  server.close()
})

/** A backend that does not answer, and how its first connection ends. */
async function silentBackend() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const answer = tunnel(request, { host: '127.0.0.1', port, path: '/' })
  if (answer.type !== 'tunnel') throw new Error('not a tunnel')
  return { server, accepted, connect: answer.connect }
}

const withinMs = 5_000

test('API-29 the connection to the backend is closed, the client disconnects during the dial', async () => {
  const { server, accepted, connect } = await silentBackend()
  const client = new SlowClient()
  const refused = assert.rejects(connect(client, Buffer.alloc(0), realClock), /the client went away/)
  client.destroy()
  // The attempt may have been given up before the backend saw it.
  const closed = accepted.then(([backend]) => once(backend.resume(), 'close'))
  using limit = deadlineScope({ clock: realClock, ms: withinMs })
  const late = once(limit.signal, 'abort').then(() => Promise.reject(new Error('it stays open')))
  await Promise.race([refused, late])
  const open = await new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)))
  if (open > 0) await Promise.race([closed, late])
  server.close()
})

test('API-29 no dial starts for a client that is already gone', async () => {
  const { server, connect } = await silentBackend()
  const client = new SlowClient()
  client.destroy()
  await once(client, 'close')
  await assert.rejects(connect(client, Buffer.alloc(0), realClock), /the client went away/)
  server.close()
})

test('API-29 a backend that never answers an upgrade is given up after three minutes', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const { server, accepted, connect } = await silentBackend()
  const refused = assert.rejects(connect(new SlowClient(), Buffer.alloc(0), clock), /no answer within 180 seconds/)
  const [backend] = await accepted
  await once(backend, 'data')
  const closed = once(backend, 'close')
  await clock.advance(180_000)
  await Promise.all([refused, closed])
  server.close()
})

/** A client of a real HTTP server, which has asked for a tunnel and sent `sent` bytes more; `joined` is how the tunnel ends. */
async function eagerClient(sent: number) {
  const backend = await silentBackend()
  const front = createHttpServer().listen(0, '127.0.0.1')
  await once(front, 'listening')
  const client = connectTo((front.address() as AddressInfo).port, '127.0.0.1')
  const upgraded = once(front, 'upgrade') as Promise<[unknown, Duplex, Buffer]>
  client.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: x\r\n\r\n')
  const [, socket, first] = await upgraded
  socket.on('error', () => {})
  const joined = backend.connect(socket, first, realClock)
  const [accepted] = await backend.accepted
  await once(accepted, 'data')
  await new Promise<void>((resolve) => client.write('z'.repeat(sent), () => resolve()))
  const close = () => {
    for (const connection of [client, socket, accepted]) connection.destroy()
    backend.server.close()
    front.close()
  }
  return { client, accepted, joined, close }
}

for (const sent of [0, 100_000]) {
  test(`API-29 a client that leaves before the backend answers, after sending ${sent} bytes, is noticed at once`, async () => {
    const { client, joined, close } = await eagerClient(sent)
    const late = realClock.sleep(withinMs).then(() => Promise.reject(new Error('it is not noticed')))
    late.catch(() => {})
    client.end()
    client.destroySoon()
    await assert.rejects(Promise.race([joined, late]), /the client went away/)
    close()
  })
}

test('API-29 a client that sends without end before the backend answers is ended', async () => {
  const { client, joined, close } = await eagerClient(0)
  client.on('error', () => {})
  client.write(Buffer.alloc(10_000_000))
  await assert.rejects(joined, /the client sent more than 262144 bytes before the backend answered/)
  close()
})

test('API-29 bytes that are sent before the backend answers are forwarded after its answer', async () => {
  const { accepted, joined, close } = await eagerClient(100_000)
  let received = 0
  const all = new Promise<void>((resolve) => {
    accepted.on('data', (chunk: Buffer) => {
      received += chunk.length
      if (received === 100_000) resolve()
    })
  })
  for (let round = 0; round < 20; round++) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(received, 0)
  accepted.write(head)
  await all
  close()
  await joined
})
