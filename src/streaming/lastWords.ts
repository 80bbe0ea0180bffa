/**
 * Keeps what a peer said last (L1). A server that is done closes its socket while bytes of ours are still on their way, and its kernel answers
 * those with a reset. Node ends a socket, both directions of it, with the first write or read that fails, and drops what has come before and
 * is not read yet: the end of an output, the status of a command. Go, which upstream's clients and servers are written in, reads on.
 */
import type { Duplex } from 'node:stream'

type Done = (error?: Error | null) => void

/** Writes that fail because the peer is gone count as done: that it is gone is learnt by reading, behind the last that it said. */
export function readOnAfterFailedWrites(socket: Duplex): void {
  const { _write: write, _writev: writev } = socket
  socket._write = (chunk, encoding, done) => write.call(socket, chunk, encoding, unlessPeerGone(done))
  if (writev) socket._writev = (chunks, done) => writev.call(socket, chunks, unlessPeerGone(done))
}

function unlessPeerGone(done: Done): Done {
  return (error) => {
    const code = error && 'code' in error ? error.code : undefined
    done(code === 'EPIPE' || code === 'ECONNRESET' ? null : error)
  }
}

/** What a socket that failed while it was paused had received before. */
export function takeUnread(socket: Duplex): Buffer {
  const chunks: Buffer[] = []
  for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) chunks.push(chunk)
  return Buffer.concat(chunks)
}
