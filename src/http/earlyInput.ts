/**
 * Reads what a client sends while its tunnel waits for the backend (L1): node reports a closed connection only after all input has been read.
 */
import type { Duplex } from 'node:stream'

/** Clients wait for the answer before they send; some send the first message of their protocol. */
export const maxEarlyBytes = 256 * 1024

export interface EarlyInput {
  /** Stops reading. @returns the bytes received so far */
  end(): Buffer
}

/** @param fail called when the client ends its side, which leaves no use for a tunnel, or sends more than is kept */
export function readEarly(socket: Duplex, fail: (error: Error) => void): EarlyInput {
  const chunks: Buffer[] = []
  let length = 0
  const take = (chunk: Buffer) => {
    chunks.push(chunk)
    length += chunk.length
    if (length <= maxEarlyBytes) return
    socket.pause()
    fail(new Error(`the client sent more than ${maxEarlyBytes} bytes before the backend answered`))
  }
  const ended = () => fail(new Error('the client went away'))
  socket.on('data', take)
  socket.once('end', ended)
  return {
    end: () => {
      socket.removeListener('data', take)
      socket.removeListener('end', ended)
      socket.pause()
      return Buffer.concat(chunks)
    },
  }
}
