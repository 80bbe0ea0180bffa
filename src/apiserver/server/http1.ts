/** HTTP/1.1 (L3): what curl, browsers and upgrades to WebSocket and SPDY speak. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { Cancellation } from '../cancellation.ts'
import { connectionClosed, type ExchangeDeps, serve, serveUpgrade } from './exchange.ts'
import { plainHeaders } from './headers.ts'
import { type Arrived, bodyEndedEarly, bodyTooLarge, type Peer } from './incoming.ts'
import { bodyOf, lengthOf, type Pieces } from './pieces.ts'
import { drained, type Outgoing } from './respond.ts'

const maxHeaderBytes = 256 * 1024
const idleTimeoutMs = 90_000
/** For a request to arrive completely, not for its answer. */
const requestTimeoutMs = 120_000

export function http1Server(deps: ExchangeDeps, headersTimeoutMs: number): Server {
  const server = createServer({
    maxHeaderSize: maxHeaderBytes,
    requestTimeout: requestTimeoutMs,
    headersTimeout: headersTimeoutMs,
    keepAliveTimeout: idleTimeoutMs,
  })
  server.on('clientError', (_error, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
    else socket.destroy()
  })
  server.on('request', (message: IncomingMessage, response: ServerResponse) => {
    const arrived = arrivedOf(message, response, deps.peerOf(message.socket as TLSSocket), hasBody(message))
    void serve(deps, arrived, outgoingOf(response, arrived.cancellation))
  })
  server.on('upgrade', (message: IncomingMessage, socket: Duplex, head: Buffer) => {
    void serveUpgrade(deps, arrivedOf(message, socket, deps.peerOf(message.socket as TLSSocket), false), socket, head)
  })
  return server
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

function outgoingOf(response: ServerResponse, cancellation: Cancellation): Outgoing {
  return {
    start: (status, headers, flush) => {
      if (response.headersSent) return
      response.writeHead(status, headers as Record<string, string | string[]>)
      if (flush) response.flushHeaders()
    },
    write: (chunk) => response.destroyed || response.write(chunk),
    drained: () => drained(response, cancellation),
    end: (chunk) => {
      if (!response.destroyed) response.end(chunk)
    },
    endWith: (pieces) => writeAll(response, pieces, cancellation),
    abort: () => response.destroy(),
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
    // Whoever asks late hears neither event.
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
        // The rest is read and thrown away, so that the client gets to see the answer.
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
