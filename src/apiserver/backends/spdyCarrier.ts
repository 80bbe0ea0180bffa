/**
 * Port-forward of a client that tunnels SPDY through a WebSocket, for a backend that knows SPDY alone (L3): the API server ends the WebSocket
 * and forwards the frames inside.
 * Upstream: apiserver/pkg/util/proxy/streamtunnel.go.
 */
import { badRequest } from '#api/machinery/status'
import { offeredProtocols } from '#streaming/offeredProtocols'
import { acceptTunnel, tunnelPrefix } from '#streaming/webSocketHandshake'
import type { ServerRequest } from '../core/request.ts'
import type { ForwardedRequest } from './backend.ts'
import type { Carrier } from './tunnel.ts'

const kubernetesSuffix = '.k8s.io'
const ofWebSockets = ['sec-websocket-protocol', 'sec-websocket-key', 'sec-websocket-version', 'sec-websocket-extensions']

/** Whether one of the client's protocols is SPDY in a WebSocket. */
export function wantsTunnel({ headers }: Pick<ServerRequest, 'headers'>): boolean {
  return String(headers.upgrade).toLowerCase() === 'websocket' && tunnelledProtocols(headers).length > 0
}

/** The protocols that are to be spoken inside, such as portforward.k8s.io. */
function tunnelledProtocols(headers: ServerRequest['headers']): string[] {
  const offered = offeredProtocols(headers['sec-websocket-protocol'])
  return offered.filter((name) => name.startsWith(tunnelPrefix) && name.endsWith(kubernetesSuffix)).map((name) => name.slice(tunnelPrefix.length))
}

export function spdyCarrier(request: ServerRequest): Carrier {
  return {
    request: spdyRequest(request),
    accept: async (socket, head, { headers }) => {
      const spoken = [headers['x-stream-protocol-version'] ?? []].flat().join().trim()
      const { method } = request
      return acceptTunnel({ request: { method, headers: request.headers }, socket, head }, spoken === '' ? undefined : `${tunnelPrefix}${spoken}`).catch(
        (error) => {
          throw badRequest((error as Error).message)
        },
      )
    },
  }
}

function spdyRequest({ headers, path, remoteAddress, cancellation }: ServerRequest): ForwardedRequest {
  const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => !ofWebSockets.includes(name)))
  return {
    method: 'POST',
    path,
    headers: { ...kept, upgrade: 'SPDY/3.1', 'x-stream-protocol-version': tunnelledProtocols(headers) },
    remoteAddress,
    cancellation,
  }
}
