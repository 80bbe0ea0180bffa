/**
 * Authenticates service accounts by their tokens (L3). Verified signatures are kept in a bounded cache; times, audiences and the
 * objects a token is bound to are checked each time, so that a deleted pod's token is refused at once.
 * ./boundClaims.ts reads a token's claims; for tokens of secrets, ./legacyClaims.ts does. Upstream: pkg/serviceaccount/jwt.go (v1.36).
 */
import { LruCache } from '#base/lruCache'
import type { Cancellation } from '../core/cancellation.ts'
import type { UserInfo } from '../core/request.ts'
import { keyIdOf, peekClaims, verifySignature } from '../tokens/jwt.ts'
import { type KeySet, keysFor } from '../tokens/keySet.ts'
import type { SharedWait } from './sharedWait.ts'
import type { TokenAuthenticator, TokenRemarks, TokenResult } from './tokenAuthenticator.ts'

/** Checks a token with a valid signature against the time and the bound objects. */
export type ClaimsCheck = () => ({ readonly user: UserInfo } & TokenRemarks) | RefusedClaims

export interface RefusedClaims extends TokenRemarks {
  readonly user?: undefined
  readonly reason: string
  /** An object is missing, or is another one: a newer cache may have the right one. */
  readonly mayBeStale?: boolean | undefined
}

/** Reads the claims of a token that one of our keys signed; a text is the reason why they can never be valid. */
export type ClaimsReader = (claims: Readonly<Record<string, unknown>>, token: string) => ClaimsCheck | string

export interface ServiceAccountOptions {
  readonly keySet: KeySet
  readonly issuers: readonly string[]
  readonly apiAudiences: readonly string[]
  readonly claims: ClaimsReader
  /** Resolves when the cache has all that was written before the call, also by other servers. Absent: the cache is always that new. */
  readonly catchUp?: SharedWait | undefined
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
  const take = (fresh: VerifiedToken | string, token: string, asked: Asked): TokenResult | Promise<TokenResult> => {
    if (typeof fresh === 'string') return { decision: 'rejected', reason: fresh }
    verified.set(token, fresh)
    return decide(options, fresh, asked)
  }
  return {
    name: 'serviceaccount',
    authenticateToken(token, audiences, cancellation) {
      const asked: Asked = { audiences, cancellation }
      if (keys !== keySet.keys) {
        keys = keySet.keys
        verified = new LruCache(cacheSize)
      }
      const known = verified.get(token)
      if (known) return decide(options, known, asked)
      // A cheap check of the issuer leaves tokens of other issuers to other authenticators.
      const issuer = peekClaims(token)?.iss
      if (typeof issuer !== 'string' || !options.issuers.includes(issuer)) return undefined
      const keyId = keyIdOf(token)
      if (!keySet.refresh || keysFor(keySet, keyId).length > 0) return take(verify(options, keyId, token), token, asked)
      return keySet.refresh().then(() => take(verify(options, keyId, token), token, asked))
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

interface Asked {
  readonly audiences: readonly string[]
  readonly cancellation: Pick<Cancellation, 'signal'> | undefined
}

function decide(options: ServiceAccountOptions, token: VerifiedToken, { audiences: wanted, cancellation }: Asked): TokenResult | Promise<TokenResult> {
  const audiences = meantAudiences(token, wanted, options.apiAudiences)
  if (audiences.length === 0) {
    return {
      decision: 'rejected',
      reason: `token audiences ${quoted(token.audiences ?? options.apiAudiences)} is invalid for the target audiences ${quoted(wanted)}`,
    }
  }
  const found = token.check()
  if (found.user || !found.mayBeStale || !options.catchUp) return resultOf(options, token, found, audiences)
  return options.catchUp(cancellation).then(() => resultOf(options, token, token.check(), audiences))
}

type Checked = ReturnType<ClaimsCheck>

function resultOf(options: ServiceAccountOptions, token: VerifiedToken, found: Checked, audiences: readonly string[]): TokenResult {
  if (!found.user) {
    const { reason, warnings, annotations } = found
    return { decision: 'rejected', reason, ...(warnings ? { warnings } : {}), ...(annotations ? { annotations } : {}) }
  }
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
