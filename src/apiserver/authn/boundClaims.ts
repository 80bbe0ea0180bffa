/**
 * Reads the service account that a token of the TokenRequest API names, and checks that the objects it is bound to still exist (L3).
 * Upstream: pkg/serviceaccount/claims.go, go-jose's jwt.Claims.Validate (v1.36).
 */
import type { KubeObject } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { type Metrics, noMetrics } from '#base/metrics'
import { parseTime } from '#base/time'
import type { ObjectReader } from '../core/objectReader.ts'
import type { UserInfo } from '../core/request.ts'
import type { BoundReference, TokenClaims } from '../tokens/jwt.ts'
import type { ClaimsReader } from './serviceAccount.ts'
import { serviceAccountUser } from './serviceAccountUser.ts'

export interface BoundClaimsOptions {
  readonly reader: ObjectReader
  readonly clock: Clock
  readonly metrics?: Metrics | undefined
}

/** Tolerance for clocks that differ; also how long tokens stay valid after their object's deletion began, so that a pod can shut down. */
const leewayMs = 60_000
const invalidated = 'service account token has been invalidated'
const unexpected = 'service account token claims could not be validated due to unexpected validation error'

export function boundClaims({ reader, clock, metrics = noMetrics }: BoundClaimsOptions): ClaimsReader {
  const stale = metrics
    .counter({ name: 'serviceaccount_stale_tokens_total', help: 'How many tokens were used beyond the time for which they were made.' })
    .series({})
  const valid = metrics.counter({ name: 'serviceaccount_valid_tokens_total', help: 'How many tokens that are bound to something were used.' }).series({})
  return (given) => {
    const claims = wellFormed(given)
    if (!claims) return 'service account token claims could not be validated due to unexpected private claim'
    const user = userOf(claims)
    const good = { user }
    const { warnafter } = claims['kubernetes.io']
    return () => {
      const nowMs = clock.now()
      const reason = timeFault(claims, nowMs)
      if (reason) return { reason }
      const fault = bindingFault(reader, claims, nowMs)
      if (fault) return { reason: fault, mayBeStale: true }
      if (!warnafter) return good
      const secondsPast = Math.floor(nowMs / 1000) - warnafter
      if (nowMs / 1000 <= warnafter) {
        valid.inc()
        return good
      }
      stale.inc()
      return { user, annotations: { 'authentication.k8s.io/stale-token': `subject: ${claims.sub}, seconds after warning threshold: ${secondsPast}` } }
    }
  }
}

function wellFormed(claims: Readonly<Record<string, unknown>>): TokenClaims | undefined {
  const { sub, exp, nbf } = claims
  const own = claims['kubernetes.io'] as Partial<TokenClaims['kubernetes.io']> | undefined
  const { namespace, serviceaccount } = own ?? {}
  const isText = (value: unknown) => typeof value === 'string' && value !== ''
  const ok =
    typeof exp === 'number' &&
    typeof nbf === 'number' &&
    isText(namespace) &&
    isText(serviceaccount?.name) &&
    isText(serviceaccount?.uid) &&
    sub === `system:serviceaccount:${namespace}:${serviceaccount?.name}`
  return ok ? (claims as unknown as TokenClaims) : undefined
}

function timeFault({ exp, nbf, iat }: TokenClaims, nowMs: number): string | undefined {
  if ((nowMs + leewayMs) / 1000 < nbf) return 'service account token is not valid yet'
  if ((nowMs - leewayMs) / 1000 > exp) return 'service account token has expired'
  return typeof iat === 'number' && (nowMs + leewayMs) / 1000 < iat ? unexpected : undefined
}

function bindingFault(reader: ObjectReader, claims: TokenClaims, nowMs: number): string | undefined {
  const { namespace, serviceaccount, pod, secret, node } = claims['kubernetes.io']
  const account = reader.get({ group: '', resource: 'serviceaccounts' }, namespace, serviceaccount.name)
  if (!account) return `serviceaccounts "${serviceaccount.name}" not found`
  if (longDeleted(account, nowMs)) return `service account ${namespace}/${serviceaccount.name} has been deleted`
  if (account.metadata.uid !== serviceaccount.uid) return `service account UID (${account.metadata.uid}) does not match claim (${serviceaccount.uid})`
  const fault = (resource: string, inNamespace: string, ref: BoundReference, kind: string) => {
    const object = reader.get({ group: '', resource }, inNamespace, ref.name)
    if (!object || longDeleted(object, nowMs)) return invalidated
    return object.metadata.uid === ref.uid ? undefined : `${kind} UID (${object.metadata.uid}) does not match service account ${kind} ref claim (${ref.uid})`
  }
  if (secret) return fault('secrets', namespace, secret, 'secret')
  if (pod) return fault('pods', namespace, pod, 'pod')
  // A pod's token names its node for information only; a token bound to the node itself is invalid without it.
  return node ? fault('nodes', '', node, 'node') : undefined
}

function longDeleted(object: { readonly metadata: { readonly deletionTimestamp?: KubeObject['metadata']['deletionTimestamp'] } }, nowMs: number): boolean {
  const deletion = object.metadata.deletionTimestamp
  return deletion !== undefined && (parseTime(deletion) ?? 0) + leewayMs < nowMs
}

function userOf(claims: TokenClaims): UserInfo {
  const { namespace, serviceaccount, pod, node } = claims['kubernetes.io']
  const extra: Record<string, string[]> = {}
  if (claims.jti) extra['authentication.kubernetes.io/credential-id'] = [`JTI=${claims.jti}`]
  if (node?.name) extra['authentication.kubernetes.io/node-name'] = [node.name]
  if (node?.uid) extra['authentication.kubernetes.io/node-uid'] = [node.uid]
  if (pod) {
    extra['authentication.kubernetes.io/pod-name'] = [pod.name]
    extra['authentication.kubernetes.io/pod-uid'] = [pod.uid]
  }
  return serviceAccountUser(namespace, serviceaccount, extra)
}
