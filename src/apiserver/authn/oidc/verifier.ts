/**
 * Verifies ID tokens of one issuer (L3): issuer, audience, times, algorithm, then the signature, so that keys are not fetched for a token
 * that is invalid anyway. Discovery of the issuer is retried until it succeeds. Upstream: go-oidc/{oidc,verify}.go, initVerifier of oidc.go (v1.36).
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { peekClaims, peekHeader } from '../../tokens/jwt.ts'
import type { HttpGet } from './httpGet.ts'
import { type FetchObserver, type KeySet, remoteKeySet } from './keySet.ts'

export type Claims = Readonly<Record<string, unknown>>

export interface VerifierOptions {
  readonly clock: Clock
  readonly audiences: readonly string[]
  readonly algorithms: readonly string[]
}

const wellKnownPath = '/.well-known/openid-configuration'
const retryMs = 10_000
const notBeforeLeewayMs = 60_000
const google = 'https://accounts.google.com'

export interface IssuerOptions {
  readonly url: string
  /** URL of the document, if it is not below the issuer's URL. */
  readonly discoveryUrl?: string | undefined
  readonly get: HttpGet
  readonly observe: FetchObserver
}

/** The keys that the issuer's discovery document names. @throws Error when there is no such document, or it is another issuer's */
async function discover({ url, discoveryUrl, get, observe }: IssuerOptions): Promise<KeySet> {
  const { status, statusText, text } = await get(discoveryUrl ?? `${url.replace(/\/$/, '')}${wellKnownPath}`)
  if (status !== 200) throw new Error(`${statusText}: ${text}`)
  const { issuer, jwks_uri: keysUrl } = parsed(text)
  if (issuer !== url)
    throw new Error(`oidc: issuer did not match the issuer returned by provider, expected ${JSON.stringify(url)} got ${JSON.stringify(issuer ?? '')}`)
  if (typeof keysUrl !== 'string' || keysUrl === '') throw new Error('provider did not return JWKS URL')
  return remoteKeySet(keysUrl, get, observe)
}

function parsed(text: string): Claims {
  try {
    return Object(JSON.parse(text)) as Claims
  } catch (error) {
    throw new Error(`oidc: failed to decode provider discovery object: ${(error as Error).message}`)
  }
}

/** Tries to discover an issuer until that works or the signal aborts, every ten seconds. */
export function discovering(
  issuer: IssuerOptions,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
): () => KeySet | undefined {
  let keys: KeySet | undefined
  const run = async () => {
    while (!signal.aborted && !keys) {
      try {
        keys = await discover(issuer)
      } catch (error) {
        if (signal.aborted) return
        log.error(error, 'Finding out about an issuer of tokens failed; trying again', { issuer: issuer.url })
        await clock.sleep(retryMs, signal).catch(() => undefined)
      }
    }
  }
  void run()
  return () => keys
}

/** The issuer that a token claims, unverified; undefined when it is no token. */
export function untrustedIssuer(token: string): string | undefined {
  if (token.trimStart().startsWith('{') || token.split('.').length !== 3) return undefined
  const issuer = peekClaims(token)?.iss ?? ''
  if (typeof issuer !== 'string') return undefined
  return issuer === 'accounts.google.com' ? google : issuer
}

/** The verified claims. @throws Error with the check that failed */
export async function verifyToken(token: string, issuer: string, keys: KeySet, { clock, audiences, algorithms }: VerifierOptions): Promise<Claims> {
  const claims = peekClaims(token)
  const header = peekHeader(token)
  if (!claims || !header) throw new Error('oidc: malformed jwt')
  const audience = [claims.aud ?? []].flat()
  const { exp = 0, nbf } = claims
  if (typeof exp !== 'number' || (nbf !== undefined && typeof nbf !== 'number') || !audience.every((one) => typeof one === 'string')) {
    throw new Error('oidc: failed to unmarshal claims')
  }
  if (untrustedIssuer(token) !== issuer) {
    throw new Error(`oidc: id token issued by a different provider, expected ${JSON.stringify(issuer)} got ${JSON.stringify(claims.iss ?? '')}`)
  }
  if (!audiences.some((one) => audience.includes(one))) throw new Error(wrongAudience(audiences, audience))
  const nowMs = clock.now()
  if (Math.floor(exp) * 1000 < nowMs) throw new Error(`oidc: token is expired (Token Expiry: ${goTime(exp * 1000)})`)
  if (nbf !== undefined && nowMs + notBeforeLeewayMs < Math.floor(nbf) * 1000) {
    throw new Error(`oidc: current time ${goTime(nowMs)} before the nbf (not before) time: ${goTime(nbf * 1000)}`)
  }
  if (typeof header.alg !== 'string' || !algorithms.includes(header.alg)) {
    throw new Error(`oidc: id token signed with unsupported algorithm, expected ${goList(algorithms)} got ${JSON.stringify(header.alg ?? '')}`)
  }
  return keys.verify(token).catch((error: Error) => {
    throw new Error(`failed to verify signature: ${error.message}`)
  })
}

/** Upstream's texts differ: its library checks a single audience, its authenticator several. */
function wrongAudience(wanted: readonly string[], got: readonly string[]): string {
  return `oidc: expected audience ${wanted.length > 1 ? `in ${goList([...wanted].sort())}` : JSON.stringify(wanted[0])} got ${goList(got)}`
}

/** Go's %q of a list. */
const goList = (texts: readonly string[]): string => `[${texts.map((text) => JSON.stringify(text)).join(' ')}]`

function goTime(ms: number): string {
  const [day, time = ''] = new Date(Math.min(Math.max(Math.floor(ms / 1000) * 1000, -62135596800000), 253402300799000)).toISOString().split('T')
  return `${day} ${time.slice(0, 8)} +0000 UTC`
}
