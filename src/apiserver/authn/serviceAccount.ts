/**
 * Authenticates service accounts by their tokens (L3). Signatures are remembered in a bounded cache; times, audiences and the
 * objects a token is bound to are looked at each time, so that a deleted pod's token is dead at once.
 * Upstream: pkg/serviceaccount/{jwt,claims}.go (v1.36).
 */
import type { KubeObject } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { LruCache } from '#base/lruCache'
import { parseTime } from '#base/time'
import type { ObjectReader } from '../admission/admission.ts'
import type { UserInfo } from '../request.ts'
import { type BoundReference, peekClaims, type TokenClaims, verifySignature } from '../tokens/jwt.ts'
import type { VerificationKey } from '../tokens/keys.ts'
import type { TokenAuthenticator, TokenResult } from './tokenAuthenticator.ts'

export interface ServiceAccountOptions {
  readonly reader: ObjectReader
  readonly clock: Clock
  readonly keys: readonly VerificationKey[]
  readonly issuers: readonly string[]
}

/** A token whose signature was good, and whom it names. */
interface VerifiedToken {
  readonly claims: TokenClaims
  readonly user: UserInfo
}

/** How long after its deletion began an object still carries tokens: what a pod needs to shut down. */
const deletionLeewayMs = 60_000
const cacheSize = 4096
const clockSkewSeconds = 10

export function serviceAccountAuthenticator(options: ServiceAccountOptions): TokenAuthenticator {
  const verified = new LruCache<string, VerifiedToken>(cacheSize)
  return {
    name: 'serviceaccount',
    authenticateToken(token, audiences) {
      const known = verified.get(token)
      if (known) return check(options, known, audiences)
      // A cheap look at the issuer leaves other people's tokens to other authenticators.
      const issuer = peekClaims(token)?.iss
      if (typeof issuer !== 'string' || !options.issuers.includes(issuer)) return undefined
      const claims = wellFormed(verifySignature(token, options.keys))
      if (!claims) return rejected('invalid signature or claims')
      const fresh = { claims, user: userOf(claims) }
      verified.set(token, fresh)
      return check(options, fresh, audiences)
    },
  }
}

function rejected(reason: string): TokenResult {
  return { decision: 'rejected', reason }
}

function wellFormed(claims: Record<string, unknown> | undefined): TokenClaims | undefined {
  if (!claims) return undefined
  const { sub, aud, exp, nbf, jti } = claims
  const own = claims['kubernetes.io'] as Partial<TokenClaims['kubernetes.io']> | undefined
  const { namespace, serviceaccount } = own ?? {}
  const isText = (value: unknown) => typeof value === 'string' && value !== ''
  const ok =
    typeof exp === 'number' &&
    typeof nbf === 'number' &&
    typeof jti === 'string' &&
    Array.isArray(aud) &&
    isText(namespace) &&
    isText(serviceaccount?.name) &&
    isText(serviceaccount?.uid) &&
    sub === `system:serviceaccount:${namespace}:${serviceaccount?.name}`
  return ok ? (claims as unknown as TokenClaims) : undefined
}

function check({ reader, clock }: ServiceAccountOptions, { claims, user }: VerifiedToken, audiences: readonly string[]): TokenResult {
  const nowMs = clock.now()
  const now = nowMs / 1000
  if (now > claims.exp) return rejected('service account token has expired')
  if (now + clockSkewSeconds < claims.nbf) return rejected('service account token is not valid yet')
  const meant = audiences.filter((audience) => claims.aud.includes(audience))
  if (meant.length === 0) return rejected(`token audiences ${JSON.stringify(claims.aud)} is invalid for the target audiences ${JSON.stringify(audiences)}`)
  const { namespace, serviceaccount, pod, secret, node } = claims['kubernetes.io']
  const live = (resource: string, inNamespace: string, ref: BoundReference | undefined) => {
    if (!ref) return true
    const object = reader.get({ group: '', resource }, inNamespace, ref.name)
    return object !== undefined && object.metadata.uid === ref.uid && !longDeleted(object, nowMs)
  }
  if (!live('serviceaccounts', namespace, serviceaccount)) return rejected(`service account ${namespace}/${serviceaccount.name} has been deleted`)
  if (!live('pods', namespace, pod)) return rejected(`pod ${namespace}/${pod?.name} has been deleted`)
  if (!live('secrets', namespace, secret)) return rejected(`secret ${namespace}/${secret?.name} has been deleted`)
  // A pod's token names its node for information only; a token bound to the node itself dies with it.
  if (!pod && !live('nodes', '', node)) return rejected(`node ${node?.name} has been deleted`)
  return { decision: 'authenticated', user, audiences: meant }
}

function longDeleted(object: { readonly metadata: { readonly deletionTimestamp?: KubeObject['metadata']['deletionTimestamp'] } }, nowMs: number): boolean {
  const deletion = object.metadata.deletionTimestamp
  return deletion !== undefined && (parseTime(deletion) ?? 0) + deletionLeewayMs < nowMs
}

function userOf(claims: TokenClaims): UserInfo {
  const { namespace, serviceaccount, pod, node } = claims['kubernetes.io']
  const extra: Record<string, string[]> = { 'authentication.kubernetes.io/credential-id': [`JTI=${claims.jti}`] }
  if (node?.name) extra['authentication.kubernetes.io/node-name'] = [node.name]
  if (node?.uid) extra['authentication.kubernetes.io/node-uid'] = [node.uid]
  if (pod) {
    extra['authentication.kubernetes.io/pod-name'] = [pod.name]
    extra['authentication.kubernetes.io/pod-uid'] = [pod.uid]
  }
  return {
    name: claims.sub,
    uid: serviceaccount.uid,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    extra,
  }
}
