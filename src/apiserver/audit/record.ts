/**
 * What is known of one audited request, while it goes on (L3): handlers add the object and annotations; each stage becomes an event.
 * Upstream: apiserver/pkg/audit context.go and request.go.
 */
import type { KubeObject } from '#api/machinery/meta'
import type { Answer } from '../answer.ts'
import { type RequestAudit, type RequestBody, requestUri, type ServerRequest } from '../request.ts'
import { objectText, patchText, responseText } from './bodies.ts'
import { AuditEvent, type AuditRule, type AuditStageName, type ObjectReference, type ResponseStatus } from './event.ts'
import { sourceIps } from './sourceIps.ts'

const longestUserAgent = 1024

export class AuditRecord implements RequestAudit {
  readonly rule: AuditRule
  readonly #request: ServerRequest
  #objectRef: ObjectReference | undefined
  #requestObject: string | undefined
  #annotations: Record<string, string> | undefined

  constructor(request: ServerRequest, rule: AuditRule) {
    this.rule = rule
    this.#request = request
    this.#objectRef = referenceOf(request)
  }

  annotate(key: string, value: string): void {
    this.#annotations ??= {}
    this.#annotations[key] ??= value
  }

  requestObject(object: object): void {
    const { metadata } = object as Partial<KubeObject>
    const ref = this.#objectRef
    if (ref && metadata) {
      const { namespace, name, uid, resourceVersion } = metadata
      this.#objectRef = {
        ...ref,
        namespace: ref.namespace ?? (namespace || undefined),
        name: ref.name ?? (name || undefined),
        uid: uid || undefined,
        resourceVersion: resourceVersion || undefined,
      }
    }
    if (this.rule.level !== 'Metadata') this.#requestObject = objectText(object, this.rule.omitManagedFields)
  }

  requestPatch(body: RequestBody): void {
    if (this.rule.level !== 'Metadata') this.#requestObject = patchText(body)
  }

  /** Undefined: the policy leaves this stage out. */
  event(stage: AuditStageName, stageMs: number, responseStatus?: ResponseStatus, answer?: Answer): AuditEvent | undefined {
    const { rule } = this
    if (rule.omitStages.has(stage)) return undefined
    const request = this.#request
    const { originalUser, user, receivedMs, info } = request
    return new AuditEvent({
      level: rule.level,
      auditID: request.auditId ?? '',
      stage,
      requestURI: requestUri(request),
      verb: info?.verb ?? '',
      user: originalUser,
      impersonatedUser: user && user !== originalUser ? user : undefined,
      impersonationConstraint: request.impersonationConstraint,
      sourceIPs: sourceIps(request),
      userAgent: userAgentOf(request),
      objectRef: this.#objectRef,
      responseStatus,
      requestObject: this.#requestObject,
      responseObject: answer && rule.level === 'RequestResponse' ? () => responseText(answer, rule.omitManagedFields) : undefined,
      receivedMs,
      stageMs: stage === 'RequestReceived' ? receivedMs : stageMs,
      annotations: this.#allAnnotations(),
    })
  }

  #allAnnotations(): Readonly<Record<string, string>> | undefined {
    const { auditAnnotations, admissionAnnotations = [] } = this.#request
    if (!auditAnnotations && !this.#annotations && admissionAnnotations.length === 0) return undefined
    const all: Record<string, string> = { ...this.#annotations, ...auditAnnotations }
    for (const { key, value, level } of admissionAnnotations) if (level === 'Metadata' || this.rule.level !== 'Metadata') all[key] ??= value
    return Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)))
  }
}

function referenceOf({ info }: ServerRequest): ObjectReference | undefined {
  if (!info?.isResourceRequest) return undefined
  const { resource, namespace, name, apiGroup, apiVersion, subresource } = info
  return {
    resource: resource || undefined,
    namespace: namespace || undefined,
    name: name || undefined,
    uid: undefined,
    apiGroup: apiGroup || undefined,
    apiVersion: apiVersion || undefined,
    resourceVersion: undefined,
    subresource: subresource || undefined,
  }
}

function userAgentOf({ headers }: ServerRequest): string | undefined {
  const agent = headers['user-agent']
  if (typeof agent !== 'string' || agent === '') return undefined
  return agent.length > longestUserAgent ? `${agent.slice(0, longestUserAgent)}...TRUNCATED` : agent
}
