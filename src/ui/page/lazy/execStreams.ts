/** Runs a command in a container without a terminal (L4): bytes in, bytes out, as `kubectl cp` needs them. */
import { channels, execProtocol, failureOf } from '../../model/execChannels.ts'

const chunkBytes = 64 * 1024
const mostWaiting = 1024 * 1024
const mostErrorText = 4096

export interface Command {
  readonly open: (protocols: readonly string[]) => WebSocket
  readonly input?: Blob
  /** Output beyond it ends the command. */
  readonly mostBytes: number
  readonly onProgress: (bytes: number) => void
}

/** @throws Error with the words of the command or the server */
export function runCommand({ open, input, mostBytes, onProgress }: Command): Promise<Blob> {
  return new Promise((resolve, reject) => {
    const socket = open([execProtocol])
    socket.binaryType = 'arraybuffer'
    const parts: Uint8Array<ArrayBuffer>[] = []
    const decoder = new TextDecoder()
    let [size, errors, status] = [0, '', '']
    socket.onopen = () => {
      if (input) sendAll(socket, input, onProgress).catch(reject)
    }
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
      const channel = new Uint8Array(data)[0]
      const bytes = new Uint8Array(data.slice(1))
      if (channel === channels.stdout) {
        size += bytes.length
        parts.push(bytes)
        if (!input) onProgress(size)
        if (size <= mostBytes) return
        reject(new Error(`the file is larger than ${mostBytes / 2 ** 20} MiB: use kubectl cp`))
        socket.close()
      } else if (channel === channels.stderr) errors = `${errors}${decoder.decode(bytes)}`.slice(0, mostErrorText)
      else if (channel === channels.error) status += decoder.decode(bytes)
    }
    socket.onclose = () => {
      const failure = failureOf(status)
      if (failure === '') resolve(new Blob(parts, { type: 'application/octet-stream' }))
      else reject(new Error(errors.trim() || failure))
    }
  })
}

async function sendAll(socket: WebSocket, input: Blob, onProgress: (bytes: number) => void): Promise<void> {
  for (let at = 0; at < input.size; at += chunkBytes) {
    const chunk = new Uint8Array(await input.slice(at, at + chunkBytes).arrayBuffer())
    // The command may have ended without its input.
    if (socket.readyState !== WebSocket.OPEN) return
    socket.send(new Uint8Array([channels.stdin, ...chunk]))
    onProgress(Math.min(input.size, at + chunkBytes))
    while (socket.bufferedAmount > mostWaiting) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  if (socket.readyState === WebSocket.OPEN) socket.send(new Uint8Array([channels.close, channels.stdin]))
}
