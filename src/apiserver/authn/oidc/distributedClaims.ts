/**
 * Resolves distributed group claims (L3): the token names an endpoint, which returns another token with the groups, of any issuer that can be
 * discovered, for the same audiences. Upstream: claimResolver of plugin/pkg/authenticator/token/oidc/oidc.go; OpenID Connect Core 1.0, 5.6.2.
 */
import type { HttpGet } from './httpGet.ts'
import type { KeySet } from './keySet.ts'
import { type Claims, untrustedIssuer, type VerifierOptions, verifyToken } from './verifier.ts'

export interface ClaimResolver {
  /** The claims with the distributed one. @throws Error about its source */
  expand(claims: Claims): Promise<Claims>
}

export interface ClaimResolverOptions extends VerifierOptions {
  /** The only claim that is resolved. */
  readonly claim: string
  readonly get: HttpGet
  /** Starts the discovery of an issuer, once. @returns its keys when they are known */
  readonly keysOf: (issuer: string) => KeySet | undefined
}

interface Source {
  readonly endpoint?: unknown
  readonly access_token?: unknown
}

export function claimResolver(options: ClaimResolverOptions): ClaimResolver {
  const { claim } = options
  return {
    async expand(claims) {
      const source = Object.hasOwn(claims, claim) ? undefined : sourceOf(claims, claim)
      // Without an endpoint it may be an aggregated claim, which upstream does not resolve either.
      if (!source || typeof source.endpoint !== 'string' || source.endpoint === '') return claims
      return { ...claims, [claim]: await resolve(options, source.endpoint, source.access_token) }
    },
  }
}

function sourceOf(claims: Claims, claim: string): Source | undefined {
  const { _claim_names: names, _claim_sources: sources } = claims
  if (names === undefined) return undefined
  if (!isObject(names) || !Object.values(names).every((name) => typeof name === 'string')) throw new Error('oidc: error parsing distributed claim names')
  if (sources === undefined) throw new Error('oidc: no claim sources')
  if (!isObject(sources)) throw new Error('oidc: could not parse claim sources')
  if (!Object.hasOwn(names, claim)) return undefined
  const name = names[claim] as string
  if (!Object.hasOwn(sources, name)) throw new Error(`id token _claim_names contained a source ${name} missing in _claims_sources`)
  return Object(sources[name]) as Source
}

async function resolve(options: ClaimResolverOptions, endpoint: string, accessToken: unknown): Promise<unknown> {
  const { claim, get, keysOf } = options
  const token = await getToken(get, endpoint, accessToken).catch((error: Error) => {
    throw new Error(`while getting distributed claim "${claim}": ${error.message}`)
  })
  const issuer = untrustedIssuer(token)
  if (issuer === undefined) throw new Error(`getting untrusted issuer from endpoint ${endpoint} failed for claim "${claim}": malformed token`)
  const keys = keysOf(issuer)
  if (!keys) throw new Error(`verifying untrusted issuer ${issuer} failed: verifier not initialized for issuer: "${issuer}"`)
  const claims = await verifyToken(token, issuer, keys, options).catch((error: Error) => {
    throw new Error(`verify distributed claim token: ${error.message}`)
  })
  if (!Object.hasOwn(claims, claim)) throw new Error(`jwt returned by distributed claim endpoint "${endpoint}" did not contain claim: ${claim}`)
  return claims[claim]
}

async function getToken(get: HttpGet, endpoint: string, accessToken: unknown): Promise<string> {
  const headers: Record<string, string> = typeof accessToken === 'string' && accessToken !== '' ? { authorization: `Bearer ${accessToken}` } : {}
  const { status, statusText, text } = await get(endpoint, headers)
  if (status < 200 || status > 226) throw new Error(`error while getting distributed claim JWT: ${statusText}`)
  return text.trim()
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
