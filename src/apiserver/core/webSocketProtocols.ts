/**
 * The subprotocols that a WebSocket client offers (L3): those that say how it speaks, and the one in which browsers, which cannot set headers, hide
 * a token for this server. Upstream: apiserver/pkg/authentication/request/websocket/protocol.go.
 */

const bearerPrefix = 'base64url.bearer.authorization.k8s.io.'

type HeaderValue = string | readonly string[] | undefined

const names = (header: HeaderValue): string[] =>
  String(header ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean)

/** In the client's order, without the one that carries a token. */
export function offeredProtocols(header: HeaderValue): string[] {
  return names(header).filter((name) => !name.startsWith(bearerPrefix))
}

/** The token among them, decoded. */
export function tokenOfProtocols(header: HeaderValue): string | undefined {
  const carrier = names(header).find((name) => name.startsWith(bearerPrefix))
  return carrier === undefined ? undefined : Buffer.from(carrier.slice(bearerPrefix.length), 'base64url').toString()
}
