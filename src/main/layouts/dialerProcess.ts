/**
 * The process that connects for the API server of a local cluster (L5): it runs in the namespace that has routes to the cluster's pods, which Node cannot enter
 * by itself, and hands each connection over as a descriptor. No byte of a connection passes through it. It ends when the server does.
 */
import { connect, type Socket } from 'node:net'
import { type DialAnswer, type DialCancel, type DialRequest, dialTimeoutMs, maxDialsOfProcess, timeoutMessage } from './dialMessages.ts'

const refusal = { message: `the dialer makes ${maxDialsOfProcess} connections already: try again later`, isRefusal: true }

export function runDialerProcess(): void {
  const connecting = new Map<number, Socket>()
  let handedOver = 0
  const start = (request: DialRequest) => {
    const { id, address, port } = request
    if (connecting.size + handedOver >= maxDialsOfProcess) {
      answer({ id, error: refusal })
      return
    }
    const socket = connect({ host: address, port, timeout: dialTimeoutMs })
    connecting.set(id, socket)
    // The server is to read what the other end sends first.
    socket.pause()
    socket.once('timeout', () => socket.destroy(new Error(timeoutMessage(request))))
    socket.once('error', ({ code, message }: NodeJS.ErrnoException) => answer({ id, error: { code, message } }))
    socket.once('close', () => connecting.delete(id))
    socket.once('connect', () => {
      socket.setTimeout(0)
      connecting.delete(id)
      handedOver++
      answer({ id }, socket, () => handedOver--)
    })
  }
  const cancel = (id: number) => {
    // The server closes a connection that is already handed over: it no longer knows the dial.
    connecting.get(id)?.destroy()
    // Before the event 'close', which comes after the server's next message.
    connecting.delete(id)
  }
  process.on('message', (message: DialRequest | DialCancel) => {
    if ('cancel' in message) cancel(message.cancel)
    else start(message)
  })
  process.once('disconnect', () => process.exit(0))
}

function answer(message: DialAnswer, connection?: Socket, onSent = () => {}): void {
  // A server that has just ended takes no answer.
  if (process.connected) process.send?.(message, connection, {}, onSent)
}
