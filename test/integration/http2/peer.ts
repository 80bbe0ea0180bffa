/** For tests (L3): a listener with a handler of the test's own, and a peer that sends frames as it pleases over a real TLS connection. */
import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import type { Handler } from '#apiserver/core/stage'
import { flag, frameHeadBytes, frameType, preface, settingsAck, settingsFrame, writeFrameHead } from '#apiserver/server/http2/frames'
import { type Listener, listen } from '#apiserver/server/listener'
import { noLog } from '#base/log'
import { realClock } from '#testing/realClock'
import { testCertificates } from '#testing/testCertificates'

export interface TestServer {
  readonly listener: Listener
  readonly url: string
  readonly ca: string
  close(): Promise<void>
}

export async function startServer(handle: Handler, idleTimeoutMs?: number): Promise<TestServer> {
  const { cert, key } = await testCertificates()
  const upgrade = () => Promise.reject(new Error('no upgrades here'))
  const listener = await listen({ handle, upgrade, clock: realClock, log: noLog }, { host: '127.0.0.1', port: 0, idleTimeoutMs, tls: { cert, key } })
  return { listener, url: `https://127.0.0.1:${listener.port}`, ca: cert, close: () => listener.close(Promise.resolve()) }
}

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

export function frame(type: number, flags: number, stream: number, payload: Uint8Array | string = ''): Buffer {
  const bytes = Buffer.from(payload as Uint8Array)
  const head = Buffer.alloc(frameHeadBytes)
  writeFrameHead(head, 0, bytes.length, type, flags, stream)
  return Buffer.concat([head, bytes])
}

/** A header block of literals without indexing; invalid fields are written, too. */
export function block(fields: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]))
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1')
  const rest = bytes.length - 0x7f
  const length =
    rest < 0
      ? [bytes.length]
      : rest < 0x80
        ? [0x7f, rest]
        : [0x7f, (rest & 0x7f) | 0x80, ...(rest < 0x4000 ? [rest >>> 7] : [((rest >>> 7) & 0x7f) | 0x80, rest >>> 14])]
  return Buffer.concat([Buffer.from(length), bytes])
}

export const get = (path: string, more: readonly (readonly [string, string])[] = []) =>
  block([[':method', 'GET'], [':scheme', 'https'], [':path', path], [':authority', 'a'], ...more])
export const post = (path: string, more: readonly (readonly [string, string])[] = []) =>
  block([[':method', 'POST'], [':scheme', 'https'], [':path', path], [':authority', 'a'], ...more])
export const headers = (stream: number, fields: Uint8Array, flags: number = flag.endHeaders | flag.endStream) => frame(frameType.headers, flags, stream, fields)

/** What every connection begins with. @param settings pairs of number and value */
export const hello = (settings: readonly (readonly [number, number])[] = []) => Buffer.concat([preface, settingsFrame(settings), settingsAck])

export class TestPeer {
  readonly frames: Frame[] = []
  readonly socket: TLSSocket
  isClosed = false
  #rest: Buffer = Buffer.alloc(0)
  #changed = () => {}

  static async connect({ listener, ca }: TestServer, first: Buffer = hello()): Promise<TestPeer> {
    const socket = connect({ host: '127.0.0.1', port: listener.port, ca, ALPNProtocols: ['h2'], servername: '' })
    const peer = new TestPeer(socket)
    await once(socket, 'secureConnect')
    if (first.length > 0) socket.write(first)
    return peer
  }

  constructor(socket: TLSSocket) {
    this.socket = socket
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('data', (bytes: Buffer) => this.#read(bytes))
    socket.on('close', () => {
      this.isClosed = true
      this.#changed()
    })
  }

  send(...frames: readonly Buffer[]): this {
    this.socket.write(Buffer.concat(frames))
    return this
  }

  /** Waits until there is a frame like that. @throws when the connection closes before */
  async wait(is: (frame: Frame) => boolean): Promise<Frame> {
    for (;;) {
      const found = this.frames.find(is)
      if (found) return found
      if (this.isClosed)
        throw new Error(`closed after ${JSON.stringify(this.frames.map(({ type, stream, payload }) => [type, stream, payload.toString('hex').slice(0, 40)]))}`)
      await new Promise<void>((resolve) => {
        this.#changed = resolve
      })
    }
  }

  of(type: number, stream: number): Promise<Frame> {
    return this.wait((one) => one.type === type && one.stream === stream)
  }

  /** The last frame of a stream. */
  end(stream: number): Promise<Frame> {
    return this.wait((one) => one.stream === stream && (one.type === frameType.data || one.type === frameType.headers) && (one.flags & flag.endStream) !== 0)
  }

  async closed(): Promise<void> {
    while (!this.isClosed)
      await new Promise<void>((resolve) => {
        this.#changed = resolve
      })
  }

  /** The bytes of a stream's answer so far. */
  body(stream: number): Buffer {
    return Buffer.concat(this.frames.filter((one) => one.type === frameType.data && one.stream === stream).map(({ payload }) => payload))
  }

  #read(bytes: Buffer): void {
    let rest = Buffer.concat([this.#rest, bytes])
    while (rest.length >= frameHeadBytes) {
      const length = rest.readUIntBE(0, 3)
      if (rest.length < frameHeadBytes + length) break
      const payload = rest.subarray(frameHeadBytes, frameHeadBytes + length)
      this.frames.push({ type: rest[3]!, flags: rest[4]!, stream: rest.readUInt32BE(5), payload })
      rest = rest.subarray(frameHeadBytes + length)
    }
    this.#rest = rest
    this.#changed()
  }
}
