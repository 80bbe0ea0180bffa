/**
 * Asks a webhook to authorize a request (L3), with a SubjectAccessReview of either version. Its answers are cached; failures are retried, and after
 * the last attempt the failure policy decides. Upstream: apiserver/plugin/pkg/authorizer/webhook (v1.36).
 */
import type { SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus } from '#api/gen/types/authorization.v1'
import { isStatus } from '#api/machinery/status'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { LruCache } from '#base/lruCache'
import type { Random } from '#base/random'
import { createHttpTransport, type HttpTransportOptions } from '#client/httpTransport'
import { insistently } from '../webhooks/webhookRetry.ts'
import { accessReviewSpec } from './accessReview.ts'
import type { AuthorizationAttributes, AuthorizationDecision, Authorizer } from './authorizer.ts'
import { type MatchCondition, matchConditions } from './matchConditions.ts'
import type { WebhookAuthorizerMetrics, WebhookResult } from './metrics.ts'

export interface WebhookAuthorizerSettings {
  /** From the kubeconfig: its server is the full URL to post to. */
  readonly transport: Omit<HttpTransportOptions, 'clock'>
  readonly version: 'v1' | 'v1beta1'
  /** 0: not cached. */
  readonly authorizedTtlMs: number
  readonly unauthorizedTtlMs: number
  /** Bounds one attempt. */
  readonly timeoutMs: number
  readonly decisionOnError: 'noOpinion' | 'deny'
  /** Empty: the webhook is called for all requests. */
  readonly conditions: readonly MatchCondition[]
}

export interface WebhookAuthorizerDeps {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: WebhookAuthorizerMetrics
}

const cacheSize = 8192
/** Longer reviews are not cached, because users choose their length. */
const mostRememberedLength = 10_000

export function webhookAuthorizer(deps: WebhookAuthorizerDeps, settings: WebhookAuthorizerSettings): Authorizer {
  const { clock, log, metrics } = deps
  const { decisionOnError, conditions } = settings
  const known = new LruCache<string, { readonly decision: AuthorizationDecision; readonly untilMs: number }>(cacheSize)
  const ask = askWebhook(deps, settings)
  const remember = (key: string, attributes: AuthorizationAttributes, decision: AuthorizationDecision) => {
    const ttlMs = decision.decision === 'allow' ? settings.authorizedTtlMs : settings.unauthorizedTtlMs
    if (ttlMs > 0 && lengthOf(attributes) < mostRememberedLength) known.set(key, { decision, untilMs: clock.monotonicMs() + ttlMs })
    return decision
  }
  const failed = (error: Error): AuthorizationDecision => {
    log.error(error, 'Asking an authorization webhook failed')
    if (decisionOnError === 'noOpinion') metrics.failedOpen(resultOf(error))
    return { decision: decisionOnError, reason: '', error: error.message }
  }
  return {
    name: 'Webhook',
    authorize(attributes) {
      const spec = accessReviewSpec(attributes)
      const matches = conditions.length === 0 || measured(conditions, spec, deps)
      if (matches === false) return skipped
      if (matches !== true) return { decision: decisionOnError, reason: '', error: matches.error }
      const key = JSON.stringify(spec)
      const found = known.get(key)
      if (found && clock.monotonicMs() < found.untilMs) return found.decision
      return ask(spec).then((status) => remember(key, attributes, decisionOf(status)), failed)
    },
    rulesFor: () => ({ rules: [], incomplete: true, error: 'webhook authorizer does not support user rule resolution' }),
  }
}

const skipped: AuthorizationDecision = { decision: 'noOpinion', reason: '' }

function measured(conditions: readonly MatchCondition[], spec: SubjectAccessReviewSpec, { clock, metrics }: WebhookAuthorizerDeps) {
  const startedMs = clock.monotonicMs()
  const matches = matchConditions(conditions, spec)
  metrics.matched(clock.monotonicMs() - startedMs, matches === true ? 'matches' : matches === false ? 'excluded' : 'error')
  return matches
}

function lengthOf({ namespace, verb, apiGroup, apiVersion, resource, subresource, name, path }: AuthorizationAttributes): number {
  return [namespace, verb, apiGroup, apiVersion, resource, subresource, name, path].reduce((sum, text) => sum + Buffer.byteLength(text), 0)
}

function decisionOf({ allowed, denied, reason = '' }: SubjectAccessReviewStatus): AuthorizationDecision {
  if (denied && allowed) return { decision: 'deny', reason, error: 'webhook subject access review returned both allow and deny response' }
  return { decision: denied ? 'deny' : allowed ? 'allow' : 'noOpinion', reason }
}

function askWebhook(deps: WebhookAuthorizerDeps, { transport, version, timeoutMs }: WebhookAuthorizerSettings) {
  const { clock, metrics } = deps
  const client = createHttpTransport({ ...transport, clock })
  // The connection adds the URL's own path, which must not gain a slash.
  const path = new URL(transport.server).pathname === '/' ? '/' : ''
  const once = async (body: unknown) => {
    const startedMs = clock.monotonicMs()
    using limit = deadlineScope({ clock, ms: timeoutMs })
    try {
      const status = statusOf((await client.request({ method: 'POST', path, body }, limit.signal)).body)
      metrics.evaluated('success', clock.monotonicMs() - startedMs)
      return status
    } catch (error) {
      metrics.evaluated(resultOf(error as Error), clock.monotonicMs() - startedMs)
      throw error
    }
  }
  return (spec: SubjectAccessReviewSpec) => insistently(deps, () => once(reviewOf(spec, version)))
}

/** v1beta1 calls the groups `group`. */
function reviewOf({ groups, ...spec }: SubjectAccessReviewSpec, version: 'v1' | 'v1beta1'): object {
  const named = groups ? { [version === 'v1' ? 'groups' : 'group']: groups } : {}
  return {
    kind: 'SubjectAccessReview',
    apiVersion: `authorization.k8s.io/${version}`,
    metadata: {},
    spec: { ...spec, ...named },
    status: { allowed: false },
  }
}

function statusOf(body: unknown): SubjectAccessReviewStatus {
  const review = body as Partial<SubjectAccessReview> | undefined
  if (review?.kind !== 'SubjectAccessReview') throw new Error(`the webhook answered with ${review?.kind ?? 'no object'} instead of a SubjectAccessReview`)
  return review.status ?? { allowed: false }
}

function resultOf(error: Error): WebhookResult {
  const isLate = error.name === 'TimeoutError' || error.name === 'AbortError' || isStatus(error, 'Timeout') || (isStatus(error) && error.code === 504)
  return isLate ? 'timeout' : 'error'
}
