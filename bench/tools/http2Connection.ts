/**
 * A small HTTP/2 client for generating load: it costs a tenth of what node:http2 costs per request, so that on a small machine the server is
 * what is measured. Answers are counted, and kept or handed over only when asked.
 */
import tls from 'node:tls'
import { decodeStatus, encodeRequestHead } from './hpack.ts'

export interface ServerAddress {
  readonly host: string
  readonly port: number
  /** PEM. */
  readonly ca: string
  /** PEM; absent: no client certificate is shown. */
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

export interface LoadRequest {
  readonly method: string
  readonly path: string
  readonly body?: Buffer | undefined
  readonly contentType?: string | undefined
  readonly accept?: string | undefined
  /** More headers, lower-case. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Close the stream as soon as its status is known: a watch never ends by itself. */
  readonly statusOnly?: boolean | undefined
  /** Keep the answer's body. Bodies of refusals are always kept. */
  readonly keep?: boolean | undefined
  /** Called when the status is known. */
  readonly onStatus?: ((status: number) => void) | undefined
  /** Called with each piece of the body, which is not kept then. */
  readonly onData?: ((piece: Buffer) => void) | undefined
}

export interface LoadAnswer {
  readonly status: number
  readonly bytes: number
  readonly body: string
}

export interface Http2Connection {
  request(request: LoadRequest): Promise<LoadAnswer>
  close(): void
}

const frame = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, windowUpdate: 8 } as const
const flag = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 0x20 } as const
const setting = { headerTableSize: 1, enablePush: 2, initialWindowSize: 4 } as const
const cancelCode = 8
/** As long as a server takes, unless it says otherwise. */
const maxFrame = 16_384
const connectionWindow = 2 ** 30
const streamWindow = 2 ** 24
const defaultWindow = 65_535

interface Stream {
  readonly request: LoadRequest
  readonly resolve: (answer: LoadAnswer) => void
  readonly reject: (error: Error) => void
  status: number
  bytes: number
  unacknowledged: number
  readonly pieces: Buffer[]
}

export async function connectHttp2(address: ServerAddress): Promise<Http2Connection> {
  const { host, port, ca, cert, key } = address
  const socket = tls.connect({ host, port, ca, ...(cert && key ? { cert, key } : {}), ALPNProtocols: ['h2'], servername: '' })
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', () => (socket.alpnProtocol === 'h2' ? resolve() : reject(new Error('the server does not speak HTTP/2'))))
    socket.once('error', reject)
  })
  return new Connection(socket, `${host}:${port}`)
}

class Connection implements Http2Connection {
  readonly #socket: tls.TLSSocket
  readonly #authority: string
  readonly #streams = new Map<number, Stream>()
  #nextId = 1
  #sendWindow = defaultWindow
  #received = 0
  #rest: Buffer = Buffer.alloc(0)
  #out: Buffer[] = []
  readonly #waiting: Stream[] = []

  constructor(socket: tls.TLSSocket, authority: string) {
    this.#socket = socket
    this.#authority = authority
    socket.setNoDelay(true)
    socket.on('data', (data: Buffer) => this.#read(data))
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('the connection was closed')))
    const settings = Buffer.alloc(18)
    const values = [setting.headerTableSize, 0, setting.enablePush, 0, setting.initialWindowSize, streamWindow]
    for (let at = 0; at < 3; at++) {
      settings.writeUInt16BE(values[at * 2]!, at * 6)
      settings.writeUInt32BE(values[at * 2 + 1]!, at * 6 + 2)
    }
    this.#write(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'))
    this.#writeFrame(frame.settings, 0, 0, settings)
    this.#giveWindow(0, connectionWindow - defaultWindow)
  }

  request(request: LoadRequest): Promise<LoadAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject, status: 0, bytes: 0, unacknowledged: 0, pieces: [] })
      this.#sendWaiting()
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #sendWaiting(): void {
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      if ((next.request.body?.length ?? 0) > this.#sendWindow) return
      this.#waiting.shift()
      this.#send(next)
    }
  }

  #send(stream: Stream): void {
    const { method, path, body, contentType, accept = 'application/json', headers } = stream.request
    const id = this.#nextId
    this.#nextId += 2
    this.#streams.set(id, stream)
    const head = encodeRequestHead({ method, path, authority: this.#authority, accept, contentType, contentLength: body?.length, more: headers })
    this.#writeFrame(frame.headers, flag.endHeaders | (body ? 0 : flag.endStream), id, head)
    if (!body) return
    this.#sendWindow -= body.length
    for (let at = 0; at < body.length || at === 0; at += maxFrame) {
      this.#writeFrame(frame.data, at + maxFrame >= body.length ? flag.endStream : 0, id, body.subarray(at, at + maxFrame))
    }
  }

  #read(data: Buffer): void {
    const all = this.#rest.length > 0 ? Buffer.concat([this.#rest, data]) : data
    let at = 0
    while (all.length - at >= 9) {
      const end = at + 9 + all.readUIntBE(at, 3)
      if (end > all.length) break
      this.#readFrame(all[at + 3]!, all[at + 4]!, all.readUInt32BE(at + 5) & 0x7fff_ffff, all.subarray(at + 9, end))
      at = end
    }
    this.#rest = all.subarray(at)
  }

  #readFrame(type: number, flags: number, id: number, payload: Buffer): void {
    if (type === frame.data) this.#readData(flags, id, payload)
    else if (type === frame.headers) this.#readHeaders(flags, id, payload)
    else if (type === frame.reset) this.#end(id, new Error(`the stream was reset with code ${payload.readUInt32BE(0)}`))
    else if (type === frame.settings && !(flags & flag.ack)) this.#writeFrame(frame.settings, flag.ack, 0, Buffer.alloc(0))
    else if (type === frame.ping && !(flags & flag.ack)) this.#writeFrame(frame.ping, flag.ack, 0, payload)
    else if (type === frame.windowUpdate && id === 0) {
      this.#sendWindow += payload.readUInt32BE(0) & 0x7fff_ffff
      this.#sendWaiting()
    }
  }

  #readHeaders(flags: number, id: number, payload: Buffer): void {
    const stream = this.#streams.get(id)
    if (!stream) return
    if (stream.status === 0) {
      stream.status = decodeStatus(payload.subarray((flags & flag.padded ? 1 : 0) + (flags & flag.priority ? 5 : 0)))
      stream.request.onStatus?.(stream.status)
    }
    if (flags & flag.endStream) this.#end(id)
    else if (stream.request.statusOnly && stream.status < 300) this.#reset(id)
  }

  #reset(id: number): void {
    const cancel = Buffer.alloc(4)
    cancel.writeUInt32BE(cancelCode)
    this.#writeFrame(frame.reset, 0, id, cancel)
    this.#end(id)
  }

  #readData(flags: number, id: number, payload: Buffer): void {
    this.#received += payload.length
    if (this.#received > connectionWindow / 4) {
      this.#giveWindow(0, this.#received)
      this.#received = 0
    }
    const stream = this.#streams.get(id)
    if (!stream) return
    const piece = flags & flag.padded ? payload.subarray(1, payload.length - payload[0]!) : payload
    stream.bytes += piece.length
    stream.unacknowledged += payload.length
    if (stream.request.onData && stream.status < 300) stream.request.onData(piece)
    else if (stream.request.keep || stream.status >= 300) stream.pieces.push(Buffer.from(piece))
    if (flags & flag.endStream) this.#end(id)
    else if (stream.unacknowledged > streamWindow / 4) {
      this.#giveWindow(id, stream.unacknowledged)
      stream.unacknowledged = 0
    }
  }

  #end(id: number, error?: Error): void {
    const stream = this.#streams.get(id)
    if (!stream) return
    this.#streams.delete(id)
    if (error) stream.reject(error)
    else stream.resolve({ status: stream.status, bytes: stream.bytes, body: stream.pieces.length > 0 ? Buffer.concat(stream.pieces).toString() : '' })
  }

  #fail(error: Error): void {
    for (const id of [...this.#streams.keys()]) this.#end(id, error)
    for (const stream of this.#waiting.splice(0)) stream.reject(error)
  }

  #giveWindow(id: number, bytes: number): void {
    const payload = Buffer.alloc(4)
    payload.writeUInt32BE(bytes)
    this.#writeFrame(frame.windowUpdate, 0, id, payload)
  }

  #writeFrame(type: number, flags: number, id: number, payload: Buffer): void {
    const header = Buffer.allocUnsafe(9)
    header.writeUIntBE(payload.length, 0, 3)
    header[3] = type
    header[4] = flags
    header.writeUInt32BE(id, 5)
    this.#write(header)
    if (payload.length > 0) this.#write(payload)
  }

  /** Everything of one turn of the event loop goes out in one piece. */
  #write(bytes: Buffer): void {
    if (this.#out.push(bytes) > 1) return
    queueMicrotask(() => {
      const out = this.#out
      this.#out = []
      if (!this.#socket.destroyed) this.#socket.write(Buffer.concat(out))
    })
  }
}
