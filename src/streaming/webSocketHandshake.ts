/** Completes a WebSocket handshake (L1) with a protocol that the caller has chosen. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type WebSocket from 'ws'
import { createWebSocketStream, WebSocketServer } from 'ws'

export interface Handshake {
  readonly request: { readonly method?: string | undefined; readonly headers: Readonly<Record<string, string | readonly string[] | undefined>> }
  readonly socket: Duplex
  readonly head: Buffer
}

/** SPDY frames in binary messages: what follows the prefix is the protocol that is spoken inside. */
export const tunnelPrefix = 'SPDY/3.1+'
/** The largest SPDY frame; a client may send each in a separate message. */
const maxTunnelMessageBytes = 16 * 1024 * 1024 + 8

/**
 * The connection is paused: data that arrived with the handshake would otherwise be read before a listener is attached.
 * @param protocol undefined: the answer names none
 * @throws Error of a handshake that is malformed; nothing has been answered
 */
export function acceptWebSocket({ request, socket, head }: Handshake, protocol: string | undefined, maxMessageBytes: number): Promise<WebSocket> {
  const server = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: maxMessageBytes })
  // `ws` refuses protocols that are no tokens, such as those of tunnels, so it does not get to see them.
  const { 'sec-websocket-protocol': _, ...headers } = request.headers
  server.on('headers', (lines: string[]) => {
    if (protocol !== undefined) lines.push(`Sec-WebSocket-Protocol: ${protocol}`)
  })
  return new Promise((resolve, reject) => {
    server.once('wsClientError', reject)
    server.handleUpgrade({ method: request.method, headers } as unknown as IncomingMessage, socket, head, (accepted) => {
      accepted.pause()
      resolve(accepted)
    })
  })
}

/** Accepts a tunnel. @returns the bytes that the client sends in binary messages, and takes in such */
export async function acceptTunnel(handshake: Handshake, protocol: string | undefined): Promise<Duplex> {
  const socket = await acceptWebSocket(handshake, protocol, maxTunnelMessageBytes)
  socket.on('error', () => socket.terminate())
  // Registered before the stream's own listener, which would take text for bytes.
  socket.on('message', (_data, isBinary) => {
    if (!isBinary) tunnel.destroy(new Error('a tunnel carries binary messages only'))
  })
  const tunnel = createWebSocketStream(socket)
  tunnel.on('error', () => socket.terminate())
  socket.resume()
  return tunnel
}
