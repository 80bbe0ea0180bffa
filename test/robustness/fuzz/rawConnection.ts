/** Bytes as they are, over a TLS connection of their own: what comes back until the server closes it. */
import { connect } from 'node:tls'
import { decodeStatus } from '../../../bench/tools/hpack.ts'

export interface RawTarget {
  readonly port: number
  readonly ca: string
  /** Absent: no client certificate is shown. */
  readonly client?: { readonly cert: string; readonly key: string } | undefined
}

/** Sends the bytes, says that no more come, and waits until the connection is over. @throws when it is still open after `mostMs` */
export function exchange(target: RawTarget, protocol: 'http/1.1' | 'h2', bytes: Buffer, mostMs: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const { port, ca, client } = target
    const socket = connect({ host: '127.0.0.1', port, ca, ...client, ALPNProtocols: [protocol], servername: '' })
    const chunks: Buffer[] = []
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`the connection hangs after ${JSON.stringify(bytes.toString('latin1')).slice(0, 500)}`))
    }, mostMs)
    socket.on('secureConnect', () => socket.end(bytes))
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    // A server that cuts off what it cannot read is within its rights.
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(Buffer.concat(chunks))
    })
  })
}

export function http1Statuses(answer: Buffer): number[] {
  return [...answer.toString('latin1').matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status))
}

const headersFrame = 1

export function http2Statuses(answer: Buffer): number[] {
  const statuses: number[] = []
  for (let at = 0; at + 9 <= answer.length; at += 9 + answer.readUIntBE(at, 3)) {
    if (answer[at + 3] === headersFrame) statuses.push(decodeStatus(answer.subarray(at + 9, at + 9 + answer.readUIntBE(at, 3))))
  }
  return statuses
}
