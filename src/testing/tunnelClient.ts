/**
 * A client of port-forward that knows one way only: SPDY tunnelled through a WebSocket, as kubectl tries first, without kubectl's second way. Upstream:
 * client-go/tools/portforward/tunneling_dialer.go.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import WebSocket, { createWebSocketStream } from 'ws'
import { SpdyConnection } from '#streaming/spdy'

export const portForwardTunnel = 'SPDY/3.1+portforward.k8s.io'

interface WebSocketParts extends WebSocket {
  setSocket(socket: Duplex, head: Buffer, options: { readonly maxPayload: number }): void
}

/** @throws Error with the answer's status and text when the server does not switch to a tunnel */
export async function openTunnel(url: string, options: RequestOptions = {}, protocols = portForwardTunnel): Promise<WebSocket> {
  const headers = {
    ...options.headers,
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
    'Sec-WebSocket-Protocol': protocols,
  }
  const outgoing = (url.startsWith('https:') ? httpsRequest : httpRequest)(url, { ...options, headers })
  const refused = (once(outgoing, 'response') as Promise<[IncomingMessage]>).then(async ([response]) => {
    throw new Error(`${response.statusCode}: ${(await text(response)).trim()}`)
  })
  refused.catch(() => {})
  outgoing.end()
  const [response, socket, head] = (await Promise.race([once(outgoing, 'upgrade'), refused])) as [IncomingMessage, Duplex, Buffer]
  if (response.headers['sec-websocket-protocol'] !== portForwardTunnel) throw new Error(`the server chose ${response.headers['sec-websocket-protocol']}`)
  // The public constructor refuses the name of this protocol. Without an address it leaves the handshake to its caller.
  const Unconnected = WebSocket as unknown as new (address: null, protocols: undefined, options: object) => WebSocketParts
  const tunnel = Object.assign(new Unconnected(null, undefined, { autoPong: true }), { _isServer: false })
  tunnel.setSocket(socket, head, { maxPayload: 0 })
  tunnel.on('error', () => {})
  return tunnel
}

export interface TunnelledConnection {
  readonly data: Duplex
  /** The server's error of a failed connection; empty for a good one. */
  readonly error: Promise<string>
}

/** Forwarded connections over one tunnel, as client-go opens them. */
export function connectionsOver(tunnel: WebSocket) {
  const stream = createWebSocketStream(tunnel)
  stream.on('error', () => {})
  const spdy = new SpdyConnection(stream, { client: true })
  let requests = 0
  return {
    connect: async (port: number): Promise<TunnelledConnection> => {
      const headers = { port: String(port), requestid: String(requests++) }
      const error = await spdy.open({ streamtype: 'error', ...headers })
      error.on('error', () => {})
      error.end()
      const data = await spdy.open({ streamtype: 'data', ...headers })
      data.on('error', () => {})
      return { data, error: text(error) }
    },
    close: () => spdy.close(),
    /** Resolves when the connection is over. */
    closed: new Promise<void>((resolve) => spdy.onClose(resolve)),
  }
}
