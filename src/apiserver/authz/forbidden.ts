/**
 * Refusals of authorization (L3): their text, and the check of a further permission, such as create for an update that creates the object.
 * Upstream: apiserver/pkg/endpoints/handlers/responsewriters/errors.go, withAuthorization of handlers/update.go.
 */
import { forbidden, internalError, StatusError } from '#api/machinery/status'
import { bareMap } from '#base/bareMap'
import type { AuthorizationAttributes, Authorizer } from './authorizer.ts'
import { authorize } from './union.ts'

/**
 * Authorizers whose rules are partly unreadable may still allow, so their error counts only without an allow.
 * @throws Status Forbidden, or InternalError when an authorizer failed.
 */
export async function mustBeAllowed(authorizers: readonly Authorizer[], attributes: AuthorizationAttributes): Promise<void> {
  const { decision, reason, error } = await authorize(authorizers, attributes)
  if (decision === 'allow') return
  if (error !== undefined) throw internalError(new Error(error))
  throw forbiddenError(attributes, reason)
}

const markup: Readonly<Record<string, string>> = bareMap({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })

/** Escapes HTML in texts that users chose. */
export function sanitized(text: string): string {
  return text.replace(/[&<>]/g, (char) => markup[char] as string)
}

/** `pods "x" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "n"` and its variants. */
export function forbiddenError(attributes: AuthorizationAttributes, reason: string): StatusError {
  const message = `${sanitized(describe(attributes))}${reason ? `: ${reason}` : ''}`
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
