/**
 * The process that connects for the API server of a local cluster (L5): it runs in the namespace that has routes to the cluster's pods, which Node cannot enter
 * by itself, and hands each connection over as a descriptor. No byte of a connection passes through it. It ends when the server does.
 */
import { connect } from 'node:net'

export interface DialRequest {
  readonly id: number
  readonly address: string
  readonly port: number
}

/** Goes with the connection, or with neither when it could not be made. */
export interface DialAnswer {
  readonly id: number
  readonly error?: { readonly code?: string | undefined; readonly message: string } | undefined
}

/** Longer than the server waits: its time-out is the one that is seen. */
const connectTimeoutMs = 35_000

export function runDialerProcess(): void {
  const answer = (message: DialAnswer, connection?: ReturnType<typeof connect>) => {
    // A server that has just ended takes no answer.
    if (process.connected) process.send?.(message, connection, {}, () => {})
  }
  process.on('message', ({ id, address, port }: DialRequest) => {
    const socket = connect({ host: address, port, timeout: connectTimeoutMs })
    // The server is to read what the other end sends first.
    socket.pause()
    socket.once('timeout', () => socket.destroy(new Error('i/o timeout')))
    socket.once('error', ({ code, message }: NodeJS.ErrnoException) => answer({ id, error: { code, message } }))
    socket.once('connect', () => {
      socket.setTimeout(0)
      answer({ id }, socket)
    })
  })
  process.once('disconnect', () => process.exit(0))
}
