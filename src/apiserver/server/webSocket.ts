/**
 * Watches and logs over WebSocket (L3), for browsers that cannot read a streamed HTTP answer. An event is a message; a log is sent in messages as
 * it is read. Upstream: apiserver/pkg/endpoints/handlers/watch.go HandleWS, apimachinery/pkg/util/httpstream/wsstream/stream.go.
 */
import type { IncomingMessage } from 'node:http'
import { type Duplex, Writable } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { badRequest } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { offeredProtocols } from '#streaming/offeredProtocols'
import type { StreamAnswer, WatchAnswer } from '../core/answer.ts'
import type { ServerRequest } from '../core/request.ts'
import { discard } from './exchange.ts'
import { type Outgoing, respond } from './respond.ts'

/** The forms of a log: bytes as they are, or as base64 text. No protocol means bytes. */
const logProtocols: readonly string[] = ['binary.k8s.io', 'base64.binary.k8s.io']
const bufferedBytes = 1024 * 1024
/** Clients are not expected to send messages here. */
const maxIncomingBytes = 64 * 1024

export function wantsWebSocket({ method, headers }: ServerRequest): boolean {
  return method === 'GET' && String(headers.upgrade).toLowerCase() === 'websocket'
}

/** Takes the connection over and writes the answer until it ends or the client goes. @throws StatusError when no subprotocol of the client is supported. */
export async function respondOverWebSocket(
  request: ServerRequest,
  answer: WatchAnswer | StreamAnswer,
  socket: Duplex,
  head: Buffer,
  clock: Clock,
): Promise<void> {
  const offered = offeredProtocols(request.headers['sec-websocket-protocol'])
  const protocol = answer.type === 'watch' ? offered[0] : logProtocols.find((known) => offered.includes(known))
  if (answer.type === 'stream' && offered.length > 0 && !protocol) {
    discard(answer)
    throw badRequest(`none of the WebSocket protocols ${offered.join(', ')} is known: logs speak ${logProtocols.join(' and ')}`)
  }
  const server = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: maxIncomingBytes, handleProtocols: () => protocol ?? false })
  const handshake = { method: request.method, headers: request.headers } as unknown as IncomingMessage
  const connection = await new Promise<WebSocket>((resolve, reject) => {
    server.once('wsClientError', (error) => {
      discard(answer)
      reject(badRequest(error.message))
    })
    server.handleUpgrade(handshake, socket, head, resolve)
  })
  connection.on('error', () => connection.terminate())
  const messages = answer.type === 'watch' ? eventMessages(answer) : (chunk: Buffer) => [protocol === 'base64.binary.k8s.io' ? chunk.toString('base64') : chunk]
  await respond(request, answer, outgoing(connection, messages), clock)
}

/** JSON events are lines; protobuf events have a length prefix of four bytes. */
function eventMessages({ encoding }: WatchAnswer): (chunk: Buffer) => (string | Buffer)[] {
  if (encoding !== 'protobuf') return (chunk) => chunk.toString().match(/[^\n]+\n/g) ?? []
  return (chunk) => {
    const events: Buffer[] = []
    for (let at = 0; at < chunk.length; at += 4 + chunk.readUInt32BE(at)) events.push(chunk.subarray(at + 4, at + 4 + chunk.readUInt32BE(at)))
    return events
  }
}

/** An Outgoing that sends messages, with back-pressure from a slow client. */
function outgoing(connection: WebSocket, messages: (chunk: Buffer) => readonly (string | Buffer)[]): Outgoing {
  let sent = Promise.resolve()
  const send = (message: string | Buffer) => {
    sent = new Promise((resolve) => connection.send(message, () => resolve()))
  }
  const write = (chunk: Uint8Array) => {
    for (const message of messages(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))) send(message)
    return connection.bufferedAmount < bufferedBytes
  }
  const end = (chunk?: Uint8Array) => {
    if (chunk) write(chunk)
    connection.close(1000)
  }
  return {
    start: () => {},
    write,
    drained: () => sent,
    end,
    endWith: async (pieces) => {
      for (const piece of pieces) if (!write(piece)) await sent
      end()
    },
    abort: () => connection.terminate(),
    stream: new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        if (write(chunk)) done()
        else void sent.then(() => done())
      },
      final: (done) => {
        end()
        done()
      },
    }),
  }
}
