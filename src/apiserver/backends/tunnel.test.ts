import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { realClock } from '#testing/realClock'
import type { ServerRequest } from '../core/request.ts'
import { tunnel } from './tunnel.ts'

const head = 'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: x\r\n\r\n'
const request = { method: 'GET', path: '/', headers: { upgrade: 'x', connection: 'Upgrade' }, remoteAddress: '' } as unknown as ServerRequest

/** A client that has taken its answer's head, and takes nothing more until it is told to. */
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
  // What has been reset is noticed in one of the next rounds, or when the client takes more.
  for (let round = 0; round < 20; round++) await new Promise((resolve) => setImmediate(resolve))
  client.takeAll()
  await once(client, 'finish')
  assert.equal(client.received.length, head.length + bytes)
  client.destroy()
  await joined
  server.close()
})
