/** Joins two TCP connections (L1): byte for byte, with back-pressure; half-closed ends stay half-closed. */
import { connect, type Socket } from 'node:net'
import type { Clock } from '#base/clock'

/** How long the bytes that a reset connection left may take to reach the other end. */
const flushTimeoutMs = 5000

/** Undefined when nothing answers within `timeoutMs`. */
export function connectTo(target: { readonly address: string; readonly port: number }, timeoutMs: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: target.address, port: target.port, allowHalfOpen: true, noDelay: true, timeout: timeoutMs })
    const give = () => {
      socket.destroy()
      resolve(undefined)
    }
    socket.on('error', give)
    socket.once('timeout', give)
    socket.once('connect', () => {
      socket.setTimeout(0)
      socket.off('timeout', give)
      resolve(socket)
    })
  })
}

/** Copies bytes both ways. Resolves when both ends are closed. */
export function joinSockets(clock: Clock, client: Socket, upstream: Socket): Promise<void> {
  return new Promise((resolve) => {
    let open = 2
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.once('close', () => {
        // After an orderly end all bytes are passed on, and the other side may still have bytes to write: leave it open.
        if (!from.readableEnded || !from.writableFinished) cut(clock, to, from.read() as Buffer | null)
        if (--open === 0) resolve()
      })
      from.pipe(to)
    }
  })
}

/** Ends a connection whose other end was reset, after the bytes that had arrived before. Node sends a FIN before the reset. */
function cut(clock: Clock, socket: Socket, left: Buffer | null): void {
  if (socket.destroyed) return
  const reset = () => {
    late.cancel()
    socket.resetAndDestroy()
  }
  const late = clock.timer(flushTimeoutMs, reset)
  if (socket.writable) socket.write(left ?? '', reset)
  else reset()
}
