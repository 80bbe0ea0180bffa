/** A WebSocket that the server refuses (L4): browsers hide the answer to a handshake from the page, so that the front sends it the server's Status over an open one. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Status, StatusError } from '#api/machinery/status'
import type { UpgradeAnswer } from '#client/httpConnection'
import { channels, execProtocol } from '../model/execChannels.ts'
import { readBody } from './readBody.ts'

const mostRefusalBytes = 64 * 1024
/** What the page may send before it reads the refusal: one chunk of a file with its channel. */
const mostMessageBytes = 128 * 1024

/** The server's Status; of another answer its text. */
export async function refusalOf({ status: answered, body }: Pick<UpgradeAnswer, 'status' | 'body'>): Promise<StatusError> {
  const code = answered >= 400 ? answered : 502
  const text = await readBody(body, mostRefusalBytes).then(String, () => '')
  const { kind, message, reason, details } = statusIn(text)
  if (kind === 'Status' && message !== undefined) return new StatusError(reason ?? '', message, { code, ...(details ? { details } : {}) })
  return new StatusError('BadRequest', text.trim() || `the server answered ${answered} instead of a WebSocket`, { code })
}

function statusIn(text: string): Partial<Status> {
  try {
    return (JSON.parse(text) as Partial<Status> | null) ?? {}
  } catch {
    return {}
  }
}

/** Accepts the WebSocket of an exec, sends the refusal as the outcome of its command, and closes it. */
export async function tellRefusal(refusal: StatusError, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const { WebSocketServer } = await import('ws')
  const server = new WebSocketServer({ noServer: true, clientTracking: false, maxPayload: mostMessageBytes, handleProtocols: () => execProtocol })
  server.handleUpgrade(request, socket, head, (accepted) => {
    accepted.on('error', () => accepted.terminate())
    // The page's answer to the end is read: what came before this was read by another reader, which paused the connection.
    accepted.resume()
    accepted.send(Buffer.concat([Buffer.from([channels.error]), Buffer.from(JSON.stringify(refusal.toStatus()))]))
    accepted.close(1000)
  })
}
