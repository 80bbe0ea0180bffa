/** Sends raw bytes over a separate TLS connection, and returns what is received until the server closes it. */
import { connect } from 'node:tls'
import { decodeStatus } from '../../../bench/tools/hpack.ts'

export interface RawTarget {
  readonly port: number
  readonly ca: string
  /** Absent: no client certificate is shown. */
  readonly client?: { readonly cert: string; readonly key: string } | undefined
}

export interface Exchange {
  readonly protocol: 'http/1.1' | 'h2'
  /** Sent at once; when that many answers to it have begun, `last` follows. */
  readonly first: Buffer
  readonly answers: number
  /** Sent at the end: the server closes the connection after it. */
  readonly last: Buffer
}

/** Sends the bytes and waits until the connection is over. @throws when it is still open after `mostMs` */
export function exchange(target: RawTarget, { protocol, first, answers, last }: Exchange, mostMs: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const { port, ca, client } = target
    const socket = connect({ host: '127.0.0.1', port, ca, ...client, ALPNProtocols: [protocol], servername: '' })
    let answer: Buffer = Buffer.alloc(0)
    let sent = false
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`the connection hangs after ${JSON.stringify(Buffer.concat([first, last]).toString('latin1')).slice(0, 1_500)}`))
    }, mostMs)
    const goOn = () => {
      if (sent || (answers > 0 && statusesOf(protocol, answer).length < answers)) return
      sent = true
      socket.end(last)
    }
    socket.on('secureConnect', () => {
      socket.write(first)
      goOn()
    })
    socket.on('data', (chunk: Buffer) => {
      answer = Buffer.concat([answer, chunk])
      goOn()
    })
    // A server that cuts off what it cannot read is within its rights.
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(answer)
    })
  })
}

/** The status codes of all answers that have begun. */
export function statusesOf(protocol: 'http/1.1' | 'h2', answer: Buffer): number[] {
  return protocol === 'h2' ? http2Statuses(answer) : http1Statuses(answer)
}

function http1Statuses(answer: Buffer): number[] {
  return [...answer.toString('latin1').matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}

const headersFrame = 1

function http2Statuses(answer: Buffer): number[] {
  const statuses: number[] = []
  for (let at = 0; at + 9 <= answer.length; at += 9 + answer.readUIntBE(at, 3)) {
    if (answer[at + 3] === headersFrame) statuses.push(decodeStatus(answer.subarray(at + 9, at + 9 + answer.readUIntBE(at, 3))))
  }
  return statuses
}
