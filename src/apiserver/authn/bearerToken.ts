/**
 * Finds the bearer token of a request (L3), in the header or, for browsers' WebSockets, in a subprotocol, and asks the token authenticators.
 * A token that no authenticator accepts is refused. Upstream: apiserver/pkg/authentication/request/{bearertoken,websocket}.
 */

import { tokenOfProtocols } from '#streaming/offeredProtocols'
import type { Cancellation } from '../core/cancellation.ts'
import type { ServerRequest } from '../core/request.ts'
import type { Authenticator } from './authenticator.ts'
import type { TokenAuthenticator, TokenResult } from './tokenAuthenticator.ts'
import { firstThatAuthenticates } from './union.ts'

export function bearerTokenAuthenticator(authenticators: readonly TokenAuthenticator[], audiences: readonly string[]): Authenticator {
  return {
    name: 'bearertoken',
    authenticate(request) {
      const token = bearerToken(request)
      if (token === undefined) return undefined
      if (typeof token === 'object') return { decision: 'rejected', reason: token.fault }
      const pending = authenticateToken(authenticators, token, audiences, request.cancellation)
      return pending instanceof Promise ? pending.then((late) => remarked(late, request)) : remarked(pending, request)
    },
  }
}

function remarked(result: TokenResult, request: ServerRequest): Exclude<TokenResult, undefined> {
  if (!result) return { decision: 'rejected', reason: 'invalid bearer token' }
  if (result.warnings) request.warnings.push(...result.warnings)
  if (result.annotations) request.auditAnnotations = { ...request.auditAnnotations, ...result.annotations }
  return result
}

/** The first authenticator that accepts the token wins; a refusal counts only when none does. */
export function authenticateToken(
  authenticators: readonly TokenAuthenticator[],
  token: string,
  audiences: readonly string[],
  cancellation?: Pick<Cancellation, 'signal'>,
): Promise<TokenResult> | TokenResult {
  return firstThatAuthenticates(authenticators, (authenticator) => authenticator.authenticateToken(token, audiences, cancellation))
}

const scheme = 'bearer '
const extraSpace = 'the provided Authorization header contains extra space before the bearer token, and is ignored'

function bearerToken({ headers, warnings }: ServerRequest): string | { readonly fault: string } | undefined {
  const { authorization } = headers
  const token = typeof authorization === 'string' ? ofHeader(authorization, warnings) : undefined
  if (token !== undefined) return token
  const protocols = headers['sec-websocket-protocol']
  const carried = protocols === undefined ? undefined : tokenOfProtocols(protocols)
  return carried && 'token' in carried ? carried.token : carried
}

/** Runs for every request: no regular expression, which would scan each character of a long token. */
function ofHeader(authorization: string, warnings: string[]): string | undefined {
  const text = authorization.trim()
  if (text.slice(0, scheme.length).toLowerCase() !== scheme) return undefined
  const end = text.indexOf(' ', scheme.length)
  if (end === scheme.length) warnings.push(extraSpace)
  const token = end < 0 ? text.slice(scheme.length) : text.slice(scheme.length, end)
  return token === '' ? undefined : token
}
