/** HTTP/1.1 (L3), for curl, browsers and upgrades to WebSocket and SPDY. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { bareMap } from '#base/bareMap'
import { Cancellation } from '../core/cancellation.ts'
import { bodyOf, lengthOf, type Pieces } from '../core/pieces.ts'
import { connectionClosed, type ExchangeDeps, serve, serveUpgrade } from './exchange.ts'
import { plainHeaders, repeatsHost } from './headers.ts'
import { type Arrived, bodyEndedEarly, bodyTooLarge, type Peer } from './incoming.ts'
import { drained, type Outgoing } from './respond.ts'

const maxHeaderBytes = 256 * 1024
const idleTimeoutMs = 90_000
/** Connections are checked for late headers this many times per timeout. */
const looksPerTimeout = 4
/** Time to read the rest of a body after its answer. */
const lingerMs = 5_000

export function http1Server(deps: ExchangeDeps, headersTimeoutMs: number): Server {
  const server = createServer({
    maxHeaderSize: maxHeaderBytes,
    // Bodies of proxied requests have no time limit; bodies that are read here have the request's own deadline.
    requestTimeout: 0,
    headersTimeout: headersTimeoutMs,
    connectionsCheckingInterval: Math.ceil(headersTimeoutMs / looksPerTimeout),
    keepAliveTimeout: idleTimeoutMs,
  })
  // This server never listens itself. Only the event starts node's check of connections, which ends those whose headers do not arrive in time.
  server.emit('listening')
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === timedOut) socket.destroy()
    else refuse(socket, refusals[error.code ?? ''])
  })
  server.on('request', (message: IncomingMessage, response: ServerResponse) => {
    if (repeatsHost(message.rawHeaders)) {
      refuse(message.socket)
      return
    }
    const withBody = hasBody(message)
    if (withBody) hangUpOnceRead(message)
    const arrived = arrivedOf(message, response, deps.peerOf(message.socket as TLSSocket), withBody)
    const served = serve(deps, arrived, outgoingOf(deps, response, arrived.cancellation))
    if (withBody) void served.then(() => linger(deps, message))
    else void served
  })
  server.on('upgrade', (message: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (repeatsHost(message.rawHeaders)) refuse(socket)
    else void serveUpgrade(deps, arrivedOf(message, socket, deps.peerOf(message.socket as TLSSocket), false), socket, head)
  })
  return server
}

/** Go's server is silent then, too. */
const timedOut = 'ERR_HTTP_REQUEST_TIMEOUT'
const refusals: Readonly<Record<string, string>> = bareMap({ HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large' })

/** Answers bytes that are not a valid request; the connection ends. */
function refuse(socket: Duplex, status = '400 Bad Request'): void {
  if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
  else socket.destroy()
}

/**
 * Node closes the socket as soon as the last answer is written. If the client is still sending, it gets a reset and can lose the answer: so the
 * rest of its request is read first, for as long as `linger` allows.
 */
function hangUpOnceRead(message: IncomingMessage): void {
  const { socket } = message
  const hangUp = () => Socket.prototype.destroySoon.call(socket)
  socket.destroySoon = () => {
    if (message.complete || message.destroyed) hangUp()
    else message.once('end', hangUp)
  }
}

/** Reads the rest of a body that was answered early, so that the client gets the answer; then the connection ends. */
function linger({ clock }: ExchangeDeps, message: IncomingMessage): void {
  if (message.complete || message.destroyed) return
  message.resume()
  const timer = clock.timer(lingerMs, () => {
    if (!message.complete) message.socket.destroy()
  })
  message.once('close', () => timer.cancel())
}

function arrivedOf(message: IncomingMessage, connection: NodeJS.EventEmitter, peer: Peer, hasBody: boolean): Arrived {
  const cancellation = new Cancellation()
  const gone = () => cancellation.abort(connectionClosed)
  connection.on('close', gone)
  connection.on('error', gone)
  return {
    method: message.method ?? 'GET',
    url: message.url ?? '/',
    headers: plainHeaders(message.headers, message.rawHeaders),
    body: hasBody ? message : undefined,
    readBody: (limitBytes) => readAll(message, limitBytes, Number(message.headers['content-length'] ?? 0)),
    peer,
    cancellation,
    isHttp2: false,
  }
}

function outgoingOf({ beforeAnswers = () => {} }: ExchangeDeps, response: ServerResponse, cancellation: Cancellation): Outgoing {
  return {
    start: (status, headers, flush) => {
      if (response.headersSent) return
      beforeAnswers()
      response.writeHead(status, headers as Record<string, string | string[]>)
      if (flush) response.flushHeaders()
    },
    write: (chunk) => response.destroyed || response.write(chunk),
    drained: () => drained(response, cancellation),
    end: (chunk) => {
      beforeAnswers()
      if (!response.destroyed) response.end(chunk)
    },
    endWith: (pieces) => writeAll(response, pieces, cancellation),
    abort: () => {
      // After the last byte of an answer the connection may serve another request.
      if (!response.writableFinished) response.destroy()
    },
    stream: response,
  }
}

async function writeAll(response: ServerResponse, pieces: Pieces, cancellation: Cancellation): Promise<void> {
  const body = bodyOf(pieces, lengthOf(pieces))
  for (const chunk of body instanceof Uint8Array ? [body] : body) {
    if (cancellation.aborted || response.destroyed) return
    if (!response.write(chunk)) await drained(response, cancellation)
  }
  response.end()
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function readAll(body: IncomingMessage, limitBytes: number, announced: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (announced > limitBytes) {
      body.resume()
      reject(bodyTooLarge(limitBytes))
      return
    }
    // After the end, neither event is emitted.
    if (body.readableEnded) {
      resolve(Buffer.alloc(0))
      return
    }
    if (body.destroyed) {
      reject(bodyEndedEarly())
      return
    }
    const chunks: Buffer[] = []
    let length = 0
    body.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > limitBytes) {
        // The rest is read and dropped, so that the client gets the answer.
        chunks.length = 0
        reject(bodyTooLarge(limitBytes))
      } else chunks.push(chunk)
    })
    body.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    body.on('error', reject)
    body.on('close', () => {
      if (!body.readableEnded) reject(bodyEndedEarly())
    })
  })
}
