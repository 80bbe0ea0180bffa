/**
 * Hands a client's connection over to a backend once that has agreed to switch protocols (L3): byte for byte, so it does not matter whether
 * SPDY or WebSocket is spoken. A backend that refuses is quoted.
 * Upstream: apimachinery/pkg/util/proxy/upgradeaware.go (tryUpgrade).
 */
import type { Duplex } from 'node:stream'
import { StatusError } from '#api/machinery/status'
import type { Answer } from '../answer.ts'
import type { ServerRequest } from '../request.ts'
import type { Backend } from './backend.ts'
import { dial } from './connect.ts'
import { upgradeHead } from './forwardedHeaders.ts'

const maxHeadBytes = 64 * 1024
const headEnd = Buffer.from('\r\n\r\n')

export function tunnel(request: ServerRequest, backend: Backend): Answer {
  return {
    type: 'tunnel',
    async connect(socket, head) {
      const upstream = await dial(backend)
      const gone = () => upstream.destroy()
      socket.once('close', gone)
      upstream.write(upgradeHead(request, backend))
      if (head.length > 0) upstream.write(head)
      const received = await readHead(upstream)
      const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(received.toString('latin1', 0, 16))?.[1] ?? 0)
      if (status !== 101 && status < 400) {
        upstream.destroy()
        throw new StatusError('', `invalid upgrade response: status code ${status}`)
      }
      socket.removeListener('close', gone)
      socket.write(received)
      await join(socket, upstream)
    },
  }
}

/** What a backend sends until its head is whole; a little of what follows may be among it. */
function readHead(upstream: Duplex): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let received: Buffer = Buffer.alloc(0)
    const stop = () => {
      upstream.pause()
      upstream.removeListener('data', read)
      upstream.removeListener('error', fail)
      upstream.removeListener('close', closed)
      upstream.removeListener('end', closed)
    }
    const fail = (error: Error) => {
      stop()
      upstream.destroy()
      reject(new StatusError('', `error reading the upgrade response: ${error.message}`, { cause: error }))
    }
    const closed = () => fail(new Error('unexpected EOF'))
    const read = (chunk: Buffer) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
      if (received.indexOf(headEnd) >= 0) {
        stop()
        resolve(received)
      } else if (received.length > maxHeadBytes) fail(new Error('the head is too long'))
    }
    upstream.on('data', read)
    upstream.on('error', fail)
    upstream.on('close', closed)
    upstream.on('end', closed)
  })
}

function join(a: Duplex, b: Duplex): Promise<void> {
  return new Promise((resolve) => {
    let open = 2
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      const closed = () => {
        // A connection that was reset may have received more than the other one has taken.
        const left: Buffer | null = from.read()
        if (left !== null && to.writable) to.write(left)
        to.end()
        to.unpipe(from).resume()
        if (--open === 0) resolve()
      }
      from.pipe(to)
      // It is closed after that.
      from.on('error', () => {})
      if (from.destroyed) closed()
      else from.on('close', closed)
    }
  })
}
