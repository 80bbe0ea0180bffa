/**
 * The server's side of gRPC calls (L1), on streams of any HTTP/2 server. Handlers answer a request, or read and send messages until they return; a
 * GrpcRefusal carries the status of a failed call. Upstream: grpc/doc/PROTOCOL-HTTP2.md.
 */
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { messageOf } from '#base/messageOf'
import { GrpcError, type StatusName, statusNames } from './grpcError.ts'
import { contentType, encodeMessage, FrameReader, frame } from './grpcWire.ts'
import { loadService, type ServiceMethod } from './protoMessage.ts'
import { ReadLimitError, ReadLimits } from './protoWire.ts'
import type { UnfinishedRequests } from './unfinishedRequests.ts'

/** A call that is answered with an error. */
export class GrpcRefusal extends Error {
  readonly code: StatusName

  constructor(code: StatusName, message: string) {
    super(message)
    this.name = 'GrpcRefusal'
    this.code = code
  }
}

/** The client of a call. */
export interface GrpcClient {
  /** The call's metadata; names are in lower case. */
  metadata(name: string): string | undefined
  /** The common name in the client's certificate, which the server has verified. */
  commonName(): string | undefined
}

/** A call whose answers are a stream. */
export interface StreamCall<Request> {
  readonly client: GrpcClient
  readonly requests: AsyncIterable<Request>
  /** Aborts when the client has left. */
  readonly signal: AbortSignal
  send(message: object): void
  /** Bytes that the client has not read yet. */
  readonly queuedBytes: number
  /** Resolves when what was sent has left this process, or the call has ended. */
  drained(): Promise<void>
}

export interface ServiceImplementation {
  readonly proto: string
  /** Its package and name. */
  readonly service: string
  readonly methods?: Readonly<Record<string, (request: never, client: GrpcClient) => object | Promise<object>>>
  readonly streams?: Readonly<Record<string, (call: StreamCall<never>) => Promise<void>>>
}

interface Implementation {
  readonly method: ServiceMethod
  readonly answer?: ((request: never, client: GrpcClient) => object | Promise<object>) | undefined
  readonly stream?: ((call: StreamCall<never>) => Promise<void>) | undefined
}

export type Implementations = ReadonlyMap<string, Implementation>

/** By the path that a request names. */
export function implementationsOf(services: readonly ServiceImplementation[]): Implementations {
  const implementations = new Map<string, Implementation>()
  for (const { proto, service, methods = {}, streams = {} } of services) {
    for (const [name, method] of loadService(proto, service)) {
      const [answer, stream] = [methods[name], streams[name]]
      if (answer || stream) implementations.set(method.path, { method, answer, stream })
    }
  }
  return implementations
}

export interface ServedCall {
  readonly stream: ServerHttp2Stream
  readonly headers: IncomingHttpHeaders
  readonly maxRequestBytes: number
  /** Called before anything is sent to the client. */
  readonly onSend?: (() => void) | undefined
  /** Absent: the clients are trusted. */
  readonly unfinished?: UnfinishedRequests | undefined
}

/** Serves one call. Never throws: a failure is the call's status. */
export async function serveCall({ stream, headers, maxRequestBytes, onSend = () => {}, unfinished }: ServedCall, served: Implementations): Promise<void> {
  // A client that disconnected gets no answer.
  stream.on('error', () => {})
  try {
    const path = headers[':path'] ?? ''
    const found = served.get(path)
    if (!found) throw new GrpcRefusal('UNIMPLEMENTED', `The server does not implement the method ${path}`)
    const client = clientOf(stream, headers)
    const read = messageReader(stream, maxRequestBytes, unfinished)
    if (found.stream) await serveStream(stream, found.method, found.stream, { client, read, onSend })
    else if (found.answer) {
      const request = requestIn(await onlyMessage(stream, read), found.method)
      const answer = found.method.response.encode(await found.answer(request as never, client))
      onSend()
      answerWith(stream, answer)
    }
  } catch (error) {
    onSend()
    refuse(stream, error)
  }
}

/**
 * A request is read before anyone asks who sent it: two megabytes could hold a million empty messages. The largest request that etcd's clients send, a transaction
 * with all that it may hold, has less than half of these fields.
 */
const mostFields = 50_000
/** Each nested transaction of etcd, of 128, is two messages. */
const mostLevels = 300

function requestIn(message: Uint8Array, { request }: ServiceMethod): object {
  try {
    return request.decode(message, new ReadLimits(mostFields, mostLevels))
  } catch (error) {
    throw error instanceof ReadLimitError ? new GrpcRefusal('RESOURCE_EXHAUSTED', `the request is refused: ${error.message}`) : error
  }
}

function clientOf({ session }: ServerHttp2Stream, headers: IncomingHttpHeaders): GrpcClient {
  return {
    metadata: (name) => String(headers[name] ?? '') || undefined,
    commonName: () => session?.socket && commonNameOf(session.socket as Partial<TLSSocket>),
  }
}

/** By connection: Node decodes the certificate at each question. */
const commonNames = new WeakMap<object, string | undefined>()

function commonNameOf(socket: Partial<TLSSocket>): string | undefined {
  if (commonNames.has(socket)) return commonNames.get(socket)
  // Node lists the names where a certificate has several: Go takes the last one.
  const name = [socket.getPeerCertificate?.()?.subject?.CN].flat().at(-1)
  commonNames.set(socket, name)
  return name
}

async function serveStream(
  stream: ServerHttp2Stream,
  method: ServiceMethod,
  handler: NonNullable<Implementation['stream']>,
  { client, read, onSend }: { readonly client: GrpcClient; readonly read: MessageReader; onSend(): void },
): Promise<void> {
  const left = new AbortController()
  stream.once('close', () => left.abort(new Error('the client has left')))
  const trailers: Record<string, string> = { 'grpc-status': '0' }
  onSend()
  stream.respond({ ':status': 200, 'content-type': contentType }, { waitForTrailers: true })
  stream.once('wantTrailers', () => stream.sendTrailers(trailers))
  async function* requests(): AsyncGenerator<object> {
    // The answers need the stream after the last request.
    for await (const chunk of stream.iterator({ destroyOnReturn: false })) for (const message of read(chunk as Buffer)) yield requestIn(message, method)
  }
  try {
    await handler({
      client,
      requests: requests() as AsyncIterable<never>,
      signal: left.signal,
      send: (message) => {
        if (stream.destroyed || stream.writableEnded) return
        onSend()
        stream.write(frame(method.response.encode(message)))
      },
      get queuedBytes() {
        return stream.writableLength
      },
      drained: () => drained(stream),
    })
  } catch (error) {
    if (!left.signal.aborted) Object.assign(trailers, statusOf(error))
  }
  if (stream.destroyed) return
  stream.end()
  stream.resume()
}

function drained(stream: ServerHttp2Stream): Promise<void> {
  if (stream.destroyed || !stream.writableNeedDrain) return Promise.resolve()
  return new Promise((resolve) => {
    const done = () => {
      stream.off('drain', done).off('close', done)
      resolve()
    }
    stream.once('drain', done).once('close', done)
  })
}

/** The messages that are complete with a chunk. */
type MessageReader = (chunk: Buffer) => Buffer[]

function messageReader(stream: ServerHttp2Stream, maxBytes: number, unfinished: UnfinishedRequests | undefined): MessageReader {
  const reader = new FrameReader(maxBytes)
  return (chunk) => {
    const messages = reader.push(chunk)
    unfinished?.holds(stream, reader.heldBytes)
    return messages
  }
}

async function onlyMessage(stream: ServerHttp2Stream, read: MessageReader): Promise<Buffer> {
  let message: Buffer | undefined
  // A refusal is an answer as well: it needs the stream.
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
    for (const next of read(chunk as Buffer)) {
      if (message) throw new GrpcRefusal('INTERNAL', 'the request holds more than one message')
      message = next
    }
  }
  if (!message) throw new GrpcRefusal('UNIMPLEMENTED', 'the request holds no message')
  return message
}

function answerWith(stream: ServerHttp2Stream, message: Uint8Array): void {
  if (stream.destroyed) return
  stream.respond({ ':status': 200, 'content-type': contentType }, { waitForTrailers: true })
  stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(frame(message))
}

function refuse(stream: ServerHttp2Stream, error: unknown): void {
  if (stream.destroyed || stream.headersSent) return
  stream.respond({ ':status': 200, 'content-type': contentType, ...statusOf(error) }, { endStream: true })
  stream.resume()
}

function statusOf(error: unknown): Record<string, string> {
  const code = error instanceof GrpcRefusal || error instanceof GrpcError ? error.code : 'UNKNOWN'
  return { 'grpc-status': String(statusNames.indexOf(code)), 'grpc-message': encodeMessage(messageOf(error)) }
}
