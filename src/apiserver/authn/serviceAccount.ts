/**
 * Authenticates service accounts by their tokens (L3). Verified signatures are kept in a bounded cache; times, audiences and the
 * objects a token is bound to are checked each time, so that a deleted pod's token is refused at once.
 * ./boundClaims.ts reads a token's claims; for tokens of secrets, ./legacyClaims.ts does. Upstream: pkg/serviceaccount/jwt.go (v1.36).
 */
import { LruCache } from '#base/lruCache'
import type { UserInfo } from '../core/request.ts'
import { keyIdOf, peekClaims, verifySignature } from '../tokens/jwt.ts'
import { type KeySet, keysFor } from '../tokens/keySet.ts'
import type { TokenAuthenticator, TokenRemarks, TokenResult } from './tokenAuthenticator.ts'

/** Checks a token with a valid signature against the time and the bound objects. */
export type ClaimsCheck = () => ({ readonly user: UserInfo } & TokenRemarks) | ({ readonly user?: undefined; readonly reason: string } & TokenRemarks)

/** Reads the claims of a token that one of our keys signed; a text is the reason why they can never be valid. */
export type ClaimsReader = (claims: Readonly<Record<string, unknown>>, token: string) => ClaimsCheck | string

export interface ServiceAccountOptions {
  readonly keySet: KeySet
  readonly issuers: readonly string[]
  readonly apiAudiences: readonly string[]
  readonly claims: ClaimsReader
  /** Called for each use of a legacy token, which has no audiences. */
  readonly onLegacyToken?: (() => void) | undefined
}

interface VerifiedToken {
  /** Undefined: the token has none, and is meant for this server. */
  readonly audiences: readonly string[] | undefined
  readonly subject: string
  readonly check: ClaimsCheck
  /** The audiences that were last asked for, and those of them that the token is meant for. */
  meant?: { readonly wanted: readonly string[]; readonly audiences: readonly string[] }
}

const cacheSize = 4096

export function serviceAccountAuthenticator(options: ServiceAccountOptions): TokenAuthenticator {
  const { keySet } = options
  let keys = keySet.keys
  let verified = new LruCache<string, VerifiedToken>(cacheSize)
  const take = (fresh: VerifiedToken | string, token: string, audiences: readonly string[]): TokenResult => {
    if (typeof fresh === 'string') return { decision: 'rejected', reason: fresh }
    verified.set(token, fresh)
    return decide(options, fresh, audiences)
  }
  return {
    name: 'serviceaccount',
    authenticateToken(token, audiences) {
      if (keys !== keySet.keys) {
        keys = keySet.keys
        verified = new LruCache(cacheSize)
      }
      const known = verified.get(token)
      if (known) return decide(options, known, audiences)
      // A cheap check of the issuer leaves tokens of other issuers to other authenticators.
      const issuer = peekClaims(token)?.iss
      if (typeof issuer !== 'string' || !options.issuers.includes(issuer)) return undefined
      const keyId = keyIdOf(token)
      if (!keySet.refresh || keysFor(keySet, keyId).length > 0) return take(verify(options, keyId, token), token, audiences)
      return keySet.refresh().then(() => take(verify(options, keyId, token), token, audiences))
    },
  }
}

function verify({ keySet, claims: readClaims }: ServiceAccountOptions, keyId: string | undefined, token: string): VerifiedToken | string {
  const candidates = keysFor(keySet, keyId)
  if (candidates.length === 0) return 'invalid signature, no keys found'
  const claims = verifySignature(token, candidates)
  if (!claims) return 'go-jose/go-jose: error in cryptographic primitive'
  const check = readClaims(claims, token)
  if (typeof check === 'string') return check
  const audiences = [claims.aud ?? []].flat().map(String)
  return { audiences: audiences.length > 0 ? audiences : undefined, subject: String(claims.sub), check }
}

function decide(options: ServiceAccountOptions, token: VerifiedToken, wanted: readonly string[]): TokenResult {
  const audiences = meantAudiences(token, wanted, options.apiAudiences)
  if (audiences.length === 0) {
    return {
      decision: 'rejected',
      reason: `token audiences ${quoted(token.audiences ?? options.apiAudiences)} is invalid for the target audiences ${quoted(wanted)}`,
    }
  }
  const found = token.check()
  if (!found.user) return { decision: 'rejected', ...found }
  if (token.audiences) return { decision: 'authenticated', ...found, audiences }
  options.onLegacyToken?.()
  return { decision: 'authenticated', ...found, audiences, annotations: { ...found.annotations, 'authentication.k8s.io/legacy-token': token.subject } }
}

function meantAudiences(token: VerifiedToken, wanted: readonly string[], apiAudiences: readonly string[]): readonly string[] {
  if (token.meant?.wanted === wanted) return token.meant.audiences
  const audiences = (token.audiences ?? apiAudiences).filter((one) => wanted.includes(one))
  // Ordinary requests all use the server's own list; reviews bring their own lists.
  if (wanted === apiAudiences) token.meant = { wanted, audiences }
  return audiences
}

/** Go's %q of a list. */
function quoted(texts: readonly string[]): string {
  return `[${texts.map((text) => JSON.stringify(text)).join(' ')}]`
}
