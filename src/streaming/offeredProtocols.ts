/**
 * The subprotocols that a WebSocket client offers (L1): those that say how it speaks, and the one in which browsers, which cannot set headers, carry
 * a token. Upstream: apiserver/pkg/authentication/request/websocket/protocol.go.
 */
import { isUtf8 } from 'node:buffer'

const bearerPrefix = 'base64url.bearer.authorization.k8s.io.'
/** base64url without padding; one character alone encodes nothing. */
const base64url = /^[A-Za-z0-9_-]+$/

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

/** A token among the protocols, or why it does not count: such a request has a wrong credential, not none. */
export type ProtocolToken = { readonly token: string } | { readonly fault: string }

/** @returns undefined when none of the protocols carries a token */
export function tokenOfProtocols(header: HeaderValue): ProtocolToken | undefined {
  const carriers = names(header).filter((name) => name.startsWith(bearerPrefix))
  const encoded = carriers[0]?.slice(bearerPrefix.length)
  if (!encoded) return undefined
  if (carriers.length > 1) return { fault: 'multiple base64.bearer.authorization tokens specified' }
  if (!base64url.test(encoded) || encoded.length % 4 === 1) return { fault: 'invalid base64.bearer.authorization token encoding' }
  const token = Buffer.from(encoded, 'base64url')
  if (!isUtf8(token)) return { fault: 'invalid base64.bearer.authorization token' }
  if (offeredProtocols(header).length === 0) return { fault: 'missing additional subprotocol' }
  return { token: token.toString() }
}
