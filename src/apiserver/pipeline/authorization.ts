/**
 * Decides whether the user may do this (L3). Authorizers are asked in order; the first that allows or denies decides.
 * Upstream: apiserver/pkg/endpoints/filters/authorization.go; texts of responsewriters.Forbidden.
 */
import { type FieldTerm, parseFieldSelector } from '#api/machinery/fieldSelector'
import { forbidden, StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { AuthorizationAttributes, AuthorizationDecision, Authorizer } from '../authz/authorizer.ts'
import type { RequestInfo, ServerRequest, UserInfo } from '../request.ts'
import { decided, type Stage } from './stage.ts'

export function authorizationStage(authorizers: readonly Authorizer[], clock: Clock): Stage {
  return {
    name: 'authorization',
    async handle(request, next) {
      const startedMs = clock.monotonicMs()
      const attributes = attributesOf(request)
      const result = await authorize(authorizers, attributes)
      decided(request, 'authorization', result.reason || result.decision, clock.monotonicMs() - startedMs)
      if (result.decision !== 'allow') throw forbiddenError(attributes, result.reason)
      return next(request)
    },
  }
}

export async function authorize(authorizers: readonly Authorizer[], attributes: AuthorizationAttributes): Promise<AuthorizationDecision> {
  const reasons: string[] = []
  for (const authorizer of authorizers) {
    const pending = authorizer.authorize(attributes)
    const result = pending instanceof Promise ? await pending : pending
    if (result.decision !== 'noOpinion') return result
    if (result.reason) reasons.push(result.reason)
  }
  return { decision: 'noOpinion', reason: reasons.join('; ') }
}

function attributesOf(request: ServerRequest): AuthorizationAttributes {
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
