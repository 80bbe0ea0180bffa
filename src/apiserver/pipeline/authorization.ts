/**
 * Authorizes the request (L3). Authorizers are asked in order; the first that allows or denies decides.
 * Upstream: apiserver/pkg/endpoints/filters/authorization.go; texts of responsewriters.Forbidden.
 */
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import type { AuthorizationAttributes, AuthorizationDecision, Authorizer } from '../authz/authorizer.ts'
import { forbiddenError, sanitized } from '../authz/forbidden.ts'
import { privilegedGroup } from '../authz/privilegedGroup.ts'
import { authorize } from '../authz/union.ts'
import type { Answer } from '../core/answer.ts'
import { fieldTerms } from '../core/fieldTerms.ts'
import { type RequestAudit, type RequestInfo, requestUri, type ServerRequest, type UserInfo } from '../core/request.ts'
import { decided, type Stage } from '../core/stage.ts'
import { authorizationMetrics } from './authorizationMetrics.ts'

export interface AuthorizationStageDeps {
  readonly authorizers: readonly Authorizer[]
  readonly clock: Clock
  readonly metrics: Metrics
}

export function authorizationStage({ authorizers, clock, metrics }: AuthorizationStageDeps): Stage {
  const recorded = authorizationMetrics(metrics)
  return {
    name: 'authorization',
    handle(request, next) {
      const startedMs = clock.monotonicMs()
      const attributes = attributesOf(request)
      const pass = (result: AuthorizationDecision) => {
        const durationMs = clock.monotonicMs() - startedMs
        recorded.record(result, durationMs)
        if (request.trace) decided(request, 'authorization', result.decision, durationMs, { rule: result.reason || groupRule(request) })
        if (request.audit) note(request.audit, result, durationMs)
        if (result.decision === 'allow') return next(request)
        if (result.error !== undefined) return failure(request, result.error)
        request.refusedBy = 'authorization'
        throw forbiddenError(attributes, result.reason)
      }
      const result = authorize(authorizers, attributes)
      return result instanceof Promise ? result.then(pass) : pass(result)
    },
  }
}

/** The group of administrators is allowed everything, without a reason. */
function groupRule({ user }: ServerRequest): string | undefined {
  return user?.groups.includes(privilegedGroup) ? `group ${privilegedGroup}` : undefined
}

function note(audit: RequestAudit, { decision, reason, error }: AuthorizationDecision, durationMs: number): void {
  audit.spent('authorization', durationMs)
  if (decision !== 'allow' && error !== undefined) {
    audit.annotate('authorization.k8s.io/reason', 'internal error')
    return
  }
  audit.annotate('authorization.k8s.io/decision', decision === 'allow' ? 'allow' : 'forbid')
  audit.annotate('authorization.k8s.io/reason', reason)
}

/** The authorizers failed without a decision: plain text, as upstream. */
function failure(request: ServerRequest, error: string): Answer {
  const text = `${sanitized(`Internal Server Error: ${JSON.stringify(requestUri(request))}: ${error}`)}\n`
  const headers = { 'x-content-type-options': 'nosniff' }
  return { type: 'bytes', status: 500, contentType: 'text/plain; charset=utf-8', bytes: Buffer.from(text), headers }
}

/** The request's attributes for authorizers. Its user and info must be set. */
export function attributesOf(request: ServerRequest): AuthorizationAttributes {
  const info = request.info as RequestInfo
  // As upstream, a verb in the path is authorized without the selectors.
  const isSelecting = selectorVerbs.has(info.verb) && !info.isVerbByPath
  return {
    user: request.user as UserInfo,
    verb: info.verb,
    isResourceRequest: info.isResourceRequest,
    path: info.path,
    namespace: info.namespace,
    apiGroup: info.apiGroup,
    apiVersion: info.apiVersion,
    resource: info.resource,
    subresource: info.subresource,
    name: info.name,
    fieldSelector: isSelecting ? fieldTerms(info.fieldSelector) : undefined,
    labelSelector: isSelecting ? info.labelSelector : undefined,
  }
}

const selectorVerbs: ReadonlySet<string> = new Set(['list', 'watch', 'deletecollection'])
