/**
 * Authenticates by ID tokens of one issuer (L3). It discovers the issuer in the background from the start; until that succeeds, its tokens
 * are refused. Upstream: plugin/pkg/authenticator/token/oidc/oidc.go (v1.36).
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { withAuthenticatedGroup } from '../authenticatedGroup.ts'
import { audienceAgnostic, Refusal, type TokenAuthenticator } from '../tokenAuthenticator.ts'
import { userOfClaims } from './claimMapping.ts'
import { type ClaimResolver, claimResolver } from './distributedClaims.ts'
import { createHttpGet, type HttpGet } from './httpGet.ts'
import type { KeySet } from './keySet.ts'
import type { OidcMetrics } from './metrics.ts'
import type { ValidatedAuthenticator } from './validation.ts'
import { discovering, untrustedIssuer, type VerifierOptions, verifyToken } from './verifier.ts'

export interface JwtAuthenticatorDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: OidcMetrics
  readonly apiAudiences: readonly string[]
  /** Accepted signature algorithms, such as RS256. */
  readonly algorithms: readonly string[]
}

export interface JwtAuthenticator extends TokenAuthenticator {
  /** Whether the issuer's discovery document was found. */
  readonly isReady: () => boolean
}

/** The signal ends its background work. */
export function jwtAuthenticator(deps: JwtAuthenticatorDeps, authenticator: ValidatedAuthenticator, signal: AbortSignal): JwtAuthenticator {
  const { clock, metrics, algorithms } = deps
  const { url = '', discoveryURL, certificateAuthority, audiences = [] } = authenticator.configuration.issuer
  const get = createHttpGet(certificateAuthority || undefined, clock, signal)
  const observe = metrics.fetchesOf(url)
  const keys = discovering({ url, discoveryUrl: discoveryURL || undefined, get, observe }, deps, signal)
  const options: VerifierOptions = { clock, audiences, algorithms }
  const resolver = resolverOf(deps, authenticator, { get, options, signal })
  const authenticate = async (token: string) => {
    const startedMs = clock.monotonicMs()
    try {
      const user = await userOf(token, { url, keys: keys(), options, resolver, authenticator })
      metrics.record(url, 'success', clock.monotonicMs() - startedMs)
      return user
    } catch (error) {
      metrics.record(url, 'failure', clock.monotonicMs() - startedMs)
      return new Refusal((error as Error).message)
    }
  }
  const identify = (token: string) => (untrustedIssuer(token) === url ? authenticate(token) : undefined)
  return { ...audienceAgnostic('oidc', deps.apiAudiences, identify), isReady: () => keys() !== undefined }
}

interface Parts {
  readonly url: string
  readonly keys: KeySet | undefined
  readonly options: VerifierOptions
  readonly resolver: ClaimResolver | undefined
  readonly authenticator: ValidatedAuthenticator
}

async function userOf(token: string, { url, keys, options, resolver, authenticator }: Parts) {
  if (!keys) throw new Error('oidc: authenticator not initialized')
  const own = await verifyToken(token, url, keys, options).catch((error: Error) => {
    throw new Error(`oidc: verify token: ${error.message}`)
  })
  const claims = resolver
    ? await resolver.expand(own).catch((error: Error) => {
        throw new Error(`oidc: could not expand distributed claims: ${error.message}`)
      })
    : own
  return withAuthenticatedGroup(userOfClaims(authenticator, claims))
}

/** The server of a distributed claim names its issuer, and discovery of an issuer retries without end. Upstream has no bound. */
const mostClaimIssuers = 64

/** Only a groups claim that is configured by name can be distributed. */
function resolverOf(
  deps: JwtAuthenticatorDeps,
  { configuration }: ValidatedAuthenticator,
  { get, options, signal }: { readonly get: HttpGet; readonly options: VerifierOptions; readonly signal: AbortSignal },
): ClaimResolver | undefined {
  const claim = configuration.claimMappings.groups?.claim
  if (!claim) return undefined
  const issuers = new Map<string, () => KeySet | undefined>()
  const keysOf = (issuer: string) => {
    let keys = issuers.get(issuer)
    if (!keys) {
      if (issuers.size >= mostClaimIssuers) return undefined
      keys = discovering({ url: issuer, get, observe: () => {} }, deps, signal)
      issuers.set(issuer, keys)
    }
    return keys()
  }
  return claimResolver({ ...options, claim, get, keysOf })
}
