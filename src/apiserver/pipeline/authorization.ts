/**
 * Decides whether the user may do this (L3). Authorizers are asked in order; the first that allows or denies decides.
 * Upstream: apiserver/pkg/endpoints/filters/authorization.go; texts of responsewriters.Forbidden.
 */
import { type FieldTerm, parseFieldSelector } from '#api/machinery/fieldSelector'
import { forbidden, StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { AuthorizationAttributes, AuthorizationDecision, Authorizer } from '../authz/authorizer.ts'
import type { RequestAudit, RequestInfo, ServerRequest, UserInfo } from '../request.ts'
import { decided, type Stage } from './stage.ts'

export function authorizationStage(authorizers: readonly Authorizer[], clock: Clock): Stage {
  return {
    name: 'authorization',
    handle(request, next) {
      const startedMs = request.trace ? clock.monotonicMs() : 0
      const attributes = attributesOf(request)
      const pass = (result: AuthorizationDecision) => {
        if (request.trace) decided(request, 'authorization', result.reason || result.decision, clock.monotonicMs() - startedMs)
        if (request.audit) note(request.audit, result)
        if (result.decision !== 'allow') throw forbiddenError(attributes, result.reason)
        return next(request)
      }
      const result = authorize(authorizers, attributes)
      return result instanceof Promise ? result.then(pass) : pass(result)
    },
  }
}

function note(audit: RequestAudit, { decision, reason }: AuthorizationDecision): void {
  audit.annotate('authorization.k8s.io/decision', decision === 'allow' ? 'allow' : 'forbid')
  audit.annotate('authorization.k8s.io/reason', reason)
}

/** Those who know at once are not waited for. */
export function authorize(
  authorizers: readonly Authorizer[],
  attributes: AuthorizationAttributes,
  from = 0,
  reasonsBefore: readonly string[] = [],
): Promise<AuthorizationDecision> | AuthorizationDecision {
  let reasons = reasonsBefore
  for (let at = from; at < authorizers.length; at++) {
    const result = (authorizers[at] as Authorizer).authorize(attributes)
    if (result instanceof Promise) {
      return result.then((late) => (late.decision !== 'noOpinion' ? late : authorize(authorizers, attributes, at + 1, withReason(reasons, late.reason))))
    }
    if (result.decision !== 'noOpinion') return result
    reasons = withReason(reasons, result.reason)
  }
  return { decision: 'noOpinion', reason: reasons.join('; ') }
}

function withReason(reasons: readonly string[], reason: string): readonly string[] {
  return reason ? [...reasons, reason] : reasons
}

/** What the request is about, for those who decide whether it may. Its user and meaning must be known. */
export function attributesOf(request: ServerRequest): AuthorizationAttributes {
  const info = request.info as RequestInfo
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
    fieldSelector: selectorVerbs.has(info.verb) ? fieldTerms(info.fieldSelector) : undefined,
  }
}

const selectorVerbs: ReadonlySet<string> = new Set(['list', 'watch', 'deletecollection'])

/** What does not parse narrows nothing: the handler refuses it later, to those who may ask at all. */
export function fieldTerms(text: string | undefined): readonly FieldTerm[] | undefined {
  if (!text) return undefined
  try {
    return parseFieldSelector(text).terms
  } catch {
    return undefined
  }
}

/** `pods "x" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "n"` and its variants. */
export function forbiddenError(attributes: AuthorizationAttributes, reason: string): StatusError {
  const message = `${describe(attributes)}${reason ? `: ${reason}` : ''}`
  if (!attributes.isResourceRequest) {
    return new StatusError('Forbidden', `forbidden: ${message}`, { details: {} })
  }
  return forbidden({ group: attributes.apiGroup, resource: attributes.resource }, attributes.name, message)
}

function describe({ user, verb, isResourceRequest, path, namespace, apiGroup, resource, subresource }: AuthorizationAttributes): string {
  const who = JSON.stringify(user.name)
  if (!isResourceRequest) return `User ${who} cannot ${verb} path ${JSON.stringify(path)}`
  const what = subresource ? `${resource}/${subresource}` : resource
  const where = namespace ? `in the namespace ${JSON.stringify(namespace)}` : 'at the cluster scope'
  return `User ${who} cannot ${verb} resource ${JSON.stringify(what)} in API group ${JSON.stringify(apiGroup)} ${where}`
}
