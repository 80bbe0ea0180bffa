/**
 * Accepts the upgrades that exec, attach and port-forward arrive as (L1): WebSocket (v5, v4 and the old channel.k8s.io forms) and SPDY/3.1.
 * Callers see sessions and connections, never the protocol. Upstream: apimachinery/pkg/util/httpstream, kubelet/pkg/cri/streaming.
 */
import type { IncomingMessage } from 'node:http'
import { acceptSpdyCommand, acceptSpdyPortForward } from './spdyCommand.ts'
import type { PortForwardConnection, RemoteCommandOptions, RemoteCommandSession } from './streams.ts'
import { refuse, type Upgrade } from './upgrade.ts'
import { acceptWebSocketCommand, acceptWebSocketPortForward } from './webSocketCommand.ts'

const isWebSocket = (request: IncomingMessage) => /websocket/i.test(request.headers.upgrade ?? '')
const isSpdy = (request: IncomingMessage) => /^spdy\/3\.1$/i.test(request.headers.upgrade ?? '')

/** Completes the handshake of an exec or attach. Refuses with 400 or 403 on the socket, and rejects, when no protocol is shared. */
export async function acceptRemoteCommand(upgrade: Upgrade, options: RemoteCommandOptions): Promise<RemoteCommandSession> {
  if (isWebSocket(upgrade.request)) return acceptWebSocketCommand(upgrade, options)
  if (isSpdy(upgrade.request)) return acceptSpdyCommand(upgrade, options)
  throw refuse(upgrade, 400, 'unable to upgrade: missing upgrade headers in request')
}

/** Serves a port-forward until the client leaves: `onConnection` gets each forwarded connection. `ports` are those of the query (old WebSocket form). */
export async function acceptPortForward(upgrade: Upgrade, ports: readonly number[], onConnection: (connection: PortForwardConnection) => void): Promise<void> {
  if (isWebSocket(upgrade.request)) return acceptWebSocketPortForward(upgrade, ports, onConnection)
  if (isSpdy(upgrade.request)) return acceptSpdyPortForward(upgrade, onConnection)
  throw refuse(upgrade, 400, 'unable to upgrade: missing upgrade headers in request')
}
