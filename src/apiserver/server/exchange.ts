/**
 * One request and its answer, for both protocols (L3): runs the pipeline and writes the answer, refuses malformed requests, handles upgrades.
 */
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { badRequest, isStatus, StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { hangUp } from '#streaming/hangUp'
import { type Answer, statusOf } from '../core/answer.ts'
import { type Encoded, type EncodedList, encodeAnswer, encodeList } from '../core/encode.ts'
import type { ServerRequest } from '../core/request.ts'
import type { Handler } from '../core/stage.ts'
import { statusAnswer } from '../core/statusAnswer.ts'
import { type Arrived, type Peer, serverRequest } from './incoming.ts'
import { type Outgoing, respond } from './respond.ts'

/** Takes a connection over after an upgrade request. */
export type UpgradeHandler = (request: ServerRequest, socket: Duplex, head: Buffer) => Promise<void>

export interface ExchangeDeps {
  readonly handle: Handler
  readonly upgrade: UpgradeHandler
  readonly clock: Clock
  readonly log: Logger
  /** Called before each answer is sent, so that audit events are written first. */
  beforeAnswers?(): void
  /** The peer of a connection. */
  peerOf(socket: TLSSocket | undefined): Peer
}

/** Shared by all requests: an error per request, with its stack, takes a tenth of a GET's time. */
export const connectionClosed = new DOMException('The connection or the stream was closed', 'AbortError')

/** Calls `out.abort` to break the stream off where no answer can be given. */
export async function serve(deps: ExchangeDeps, arrived: Arrived, out: Outgoing): Promise<void> {
  try {
    const request = serverRequest(arrived)
    const pending = deps.handle(request)
    await respond(request, pending instanceof Promise ? await pending : pending, out, deps.clock)
  } catch (error) {
    if (arrived.cancellation.aborted) return
    if (!isStatus(error)) {
      deps.log.error(error, 'Answering a request failed', { method: arrived.method, url: arrived.url })
      out.abort()
      return
    }
    refuse(error, out)
  }
}

/** Refuses input from which no ServerRequest can be made. */
function refuse(error: StatusError, out: Outgoing): void {
  const body = Buffer.from(JSON.stringify(error.toStatus()))
  out.start(error.code, { 'content-type': 'application/json', 'content-length': String(body.length) })
  out.end(body)
}

export async function serveUpgrade(deps: ExchangeDeps, arrived: Arrived, socket: Duplex, head: Buffer): Promise<void> {
  try {
    if (announcesBody(arrived)) throw badRequest('an upgrade request must not have a body')
    await deps.upgrade(serverRequest(arrived), socket, head)
  } catch (error) {
    if (!isStatus(error) && !arrived.cancellation.aborted) deps.log.error(error, 'An upgraded request failed', { url: arrived.url })
    const answer = statusAnswer(isStatus(error) ? error : new StatusError('InternalError', 'the upgrade failed'))
    await writeRawAnswer(socket, answer, deps.clock)
  }
}

/** Node treats such a body as the first bytes of the new protocol: a proxy could disagree where it ends, and no handler would get it. */
function announcesBody({ headers }: Arrived): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
}

/** The answer to an upgrade request that does not switch protocols; the connection ends with it. */
export async function writeRawAnswer(socket: Duplex, answer: Answer, clock: Clock): Promise<void> {
  if (socket.destroyed || (answer.type !== 'value' && answer.type !== 'bytes' && answer.type !== 'object' && answer.type !== 'list')) {
    discard(answer)
    socket.destroy()
    return
  }
  const { contentType, bytes } = answer.type === 'list' ? wholeList(await encodeList(answer)) : encodeAnswer(answer)
  const status = statusOf(answer)
  const more = 'headers' in answer ? answer.headers : undefined
  const headers = { ...(contentType ? { 'content-type': contentType } : {}), 'content-length': bytes.length, ...more, connection: 'close' }
  const lines = Object.entries(headers).flatMap(([name, value]) => [value].flat().map((one) => `${name}: ${one}`))
  const head = Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\n${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  hangUp(socket, clock, Buffer.concat([head, bytes]))
}

/** Closes the source of an answer that will not be sent. */
export function discard(answer: Answer): void {
  if (answer.type === 'watch') answer.session.close()
  if (answer.type === 'stream') answer.body.destroy()
}

function wholeList({ contentType, pieces }: EncodedList): Encoded {
  return { contentType, bytes: Buffer.concat(pieces) }
}
