/**
 * Finds the bearer token of a request (L3), in the header or, for browsers' WebSockets, in a subprotocol, and asks the token authenticators.
 * A token that nobody knows is refused. Upstream: apiserver/pkg/authentication/request/{bearertoken,websocket}.
 */
import type { ServerRequest } from '../request.ts'
import type { Authenticator } from './authenticator.ts'
import type { TokenAuthenticator, TokenResult } from './tokenAuthenticator.ts'

const protocolPrefix = 'base64url.bearer.authorization.k8s.io.'

export function bearerTokenAuthenticator(authenticators: readonly TokenAuthenticator[], audiences: readonly string[]): Authenticator {
  return {
    name: 'bearertoken',
    async authenticate(request) {
      const token = bearerToken(request)
      if (token === undefined) return undefined
      return (await authenticateToken(authenticators, token, audiences)) ?? { decision: 'rejected', reason: 'invalid bearer token' }
    },
  }
}

/** The first that authenticates wins; a refusal counts only when nobody does. */
export async function authenticateToken(authenticators: readonly TokenAuthenticator[], token: string, audiences: readonly string[]): Promise<TokenResult> {
  let refused: TokenResult
  for (const authenticator of authenticators) {
    const result = await authenticator.authenticateToken(token, audiences)
    if (result?.decision === 'authenticated') return result
    refused ??= result
  }
  return refused
}

function bearerToken({ headers }: ServerRequest): string | undefined {
  const [scheme = '', token = ''] = String(headers.authorization ?? '')
    .trim()
    .split(/ +/)
  if (scheme.toLowerCase() === 'bearer' && token !== '') return token
  for (const protocol of String(headers['sec-websocket-protocol'] ?? '').split(',')) {
    const name = protocol.trim()
    if (name.startsWith(protocolPrefix)) return Buffer.from(name.slice(protocolPrefix.length), 'base64url').toString()
  }
  return undefined
}
