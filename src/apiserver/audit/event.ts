/**
 * One entry of the audit log (L3): audit.k8s.io/v1 Event. Its content is fixed at creation; its JSON text is made on first use, which for a
 * batch is after the request. Request bodies are JSON texts already; response bodies are taken from the answer unchanged.
 * Upstream: apiserver/pkg/apis/audit/v1/types.go, pkg/audit/format.go.
 */
import { formatMicroTime } from '#base/time'
import type { UserInfo } from '../core/request.ts'
import { type AuditTexts, type Origin, quote } from './texts.ts'

export const auditLevels = ['None', 'Metadata', 'Request', 'RequestResponse'] as const
export type AuditLevel = (typeof auditLevels)[number]
export const auditStages = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'] as const
export type AuditStageName = (typeof auditStages)[number]

/** The policy's rule for an audited request. */
export interface AuditRule {
  readonly level: Exclude<AuditLevel, 'None'>
  readonly omitStages: ReadonlySet<AuditStageName>
  readonly omitManagedFields: boolean
}

interface ReferenceFields {
  readonly resource?: string | undefined
  readonly namespace?: string | undefined
  readonly name?: string | undefined
  readonly uid?: string | undefined
  readonly apiGroup?: string | undefined
  readonly apiVersion?: string | undefined
  readonly resourceVersion?: string | undefined
  readonly subresource?: string | undefined
}

/** The event's objectRef. Its text is made once, for the first event that is written. */
export class ObjectReference {
  readonly fields: ReferenceFields
  #json: string | undefined

  constructor(fields: ReferenceFields) {
    this.fields = fields
  }

  json(): string {
    if (this.#json !== undefined) return this.#json
    const { resource, namespace, name, uid, apiGroup, apiVersion, resourceVersion, subresource } = this.fields
    let text = ''
    if (resource) text += `,"resource":${quote(resource)}`
    if (namespace) text += `,"namespace":${quote(namespace)}`
    if (name) text += `,"name":${quote(name)}`
    if (uid) text += `,"uid":${quote(uid)}`
    if (apiGroup) text += `,"apiGroup":${quote(apiGroup)}`
    if (apiVersion) text += `,"apiVersion":${quote(apiVersion)}`
    if (resourceVersion) text += `,"resourceVersion":${quote(resourceVersion)}`
    if (subresource) text += `,"subresource":${quote(subresource)}`
    this.#json = `{${text.slice(1)}}`
    return this.#json
  }
}

export interface ResponseStatus {
  readonly metadata: object
  readonly status?: string | undefined
  readonly message?: string | undefined
  readonly reason?: string | undefined
  readonly details?: unknown
  readonly code?: number | undefined
}

/** The facts that all events of a request share. Their texts are made once, for the first event that is written. */
export class RequestFacts {
  readonly texts: AuditTexts
  readonly level: AuditLevel
  readonly auditID: string
  readonly requestURI: string
  readonly verb: string
  readonly user: UserInfo | undefined
  readonly origin: Origin
  readonly userAgent: string | undefined
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  #head: string | undefined
  #asked: string | undefined
  #askedAbout: ObjectReference | undefined

  constructor(of: Pick<RequestFacts, 'texts' | 'level' | 'auditID' | 'requestURI' | 'verb' | 'user' | 'origin' | 'userAgent' | 'receivedMs'>) {
    this.texts = of.texts
    this.level = of.level
    this.auditID = of.auditID
    this.requestURI = of.requestURI
    this.verb = of.verb
    this.user = of.user
    this.origin = of.origin
    this.userAgent = of.userAgent
    this.receivedMs = of.receivedMs
  }

  /** The text up to the value of the stage, with its first quote. */
  get head(): string {
    this.#head ??= `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"${this.level}","auditID":${quote(this.auditID)},"stage":"`
    return this.#head
  }

  /** The members from requestURI to objectRef. Cached, because most requests have two events. */
  asked(objectRef: ObjectReference | undefined): string {
    if (this.#asked === undefined || this.#askedAbout !== objectRef) {
      const { texts, verb, user, origin, userAgent } = this
      const about = objectRef ? `,"objectRef":${objectRef.json()}` : ''
      this.#asked = `","requestURI":${quote(this.requestURI)}${texts.caller(verb, user, origin, userAgent)}${about}`
      this.#askedAbout = objectRef
    }
    return this.#asked
  }
}

export interface EventFields {
  readonly request: RequestFacts
  readonly stage: AuditStageName
  readonly impersonatedUser: UserInfo | undefined
  /** The verb that allowed a constrained impersonation. */
  readonly impersonationConstraint?: string | undefined
  readonly objectRef: ObjectReference | undefined
  readonly responseStatus: ResponseStatus | undefined
  /** JSON. */
  readonly requestObject: string | undefined
  /** Returns JSON, made on demand. */
  readonly responseObject: (() => string | undefined) | undefined
  /** Milliseconds since the epoch. */
  readonly stageMs: number
  readonly annotations: Readonly<Record<string, string>> | undefined
}

const truncated = { 'audit.k8s.io/truncated': 'true' }

export class AuditEvent {
  readonly fields: EventFields
  #json: string | undefined

  constructor(fields: EventFields) {
    this.fields = fields
  }

  /** One line of JSON, without its end. */
  json(): string {
    this.#json ??= eventJson(this.fields)
    return this.#json
  }

  /** One line in the legacy format, without its end. */
  legacy(): string {
    return legacyText(this.fields)
  }

  /** The same without bodies. */
  withoutBodies(): AuditEvent {
    const annotations = { ...this.fields.annotations, ...truncated }
    return new AuditEvent({ ...this.fields, requestObject: undefined, responseObject: undefined, annotations })
  }
}

/** Concatenates texts: JSON.stringify of one object took five times as long. */
function eventJson(fields: EventFields): string {
  const { request, stage, impersonatedUser, impersonationConstraint, objectRef, responseStatus, requestObject, annotations, stageMs } = fields
  const { texts, receivedMs } = request
  const responseObject = fields.responseObject?.()
  const isAnother = impersonatedUser !== undefined || impersonationConstraint !== undefined
  let text = request.head + stage + (isAnother ? impersonatedText(fields) : request.asked(objectRef))
  if (responseStatus) text += `,"responseStatus":${statusText(responseStatus)}`
  if (requestObject) text += `,"requestObject":${requestObject}`
  if (responseObject) text += `,"responseObject":${responseObject}`
  text += `,"requestReceivedTimestamp":"${texts.time(receivedMs)}","stageTimestamp":"${texts.time(stageMs)}"`
  return annotations ? `${text},"annotations":{${annotationsText(annotations, texts)}}}` : `${text}}`
}

/** The members of an impersonated request, in place of {@link RequestFacts.asked}. */
function impersonatedText({ request, impersonatedUser, impersonationConstraint, objectRef }: EventFields): string {
  const { texts, requestURI, verb, user, origin, userAgent } = request
  let text = `","requestURI":${quote(requestURI)},"verb":${quote(verb)},"user":${user ? texts.user(user) : '{}'}`
  if (impersonatedUser) text += `,"impersonatedUser":${texts.user(impersonatedUser)}`
  if (impersonationConstraint) text += `,"authenticationMetadata":{"impersonationConstraint":${texts.quoted(impersonationConstraint)}}`
  text += origin.json
  if (userAgent) text += `,"userAgent":${texts.quoted(userAgent)}`
  return objectRef ? `${text},"objectRef":${objectRef.json()}` : text
}

/** Keys and most values are in many events, so their texts are cached. */
function annotationsText(annotations: Readonly<Record<string, string>>, texts: AuditTexts): string {
  let text = ''
  for (const key in annotations) text += (text === '' ? '' : ',') + texts.member(key, annotations[key] as string)
  return text
}

/** Most statuses have only a code, whose text is cached. */
function statusText(status: ResponseStatus): string {
  return status.status === undefined && status.message === undefined ? `{"metadata":{},"code":${status.code}}` : JSON.stringify(status)
}

const quoted = (value: unknown): string => JSON.stringify(value)

function legacyText({ request, stage, impersonatedUser, objectRef, responseStatus }: EventFields): string {
  const { auditID, origin, verb, user, userAgent, requestURI, receivedMs } = request
  const listed = (groups: readonly string[]) => quoted(groups.map((group) => quoted(group)).join(','))
  const parts = [
    `id=${quoted(auditID)}`,
    `stage=${quoted(stage)}`,
    `ip=${quoted(origin.ips[0] ?? '<unknown>')}`,
    `method=${quoted(verb)}`,
    `user=${quoted(user?.name || '<none>')}`,
    `groups=${user?.name && user.groups.length > 0 ? listed(user.groups) : '"<none>"'}`,
    `as=${quoted(impersonatedUser?.name ?? '<self>')}`,
    `asgroups=${impersonatedUser ? listed(impersonatedUser.groups) : '"<lookup>"'}`,
    `user-agent=${quoted(userAgent ?? '')}`,
    `namespace=${quoted(objectRef?.fields.namespace || '<none>')}`,
    `uri=${quoted(requestURI)}`,
    `response="${responseStatus ? (responseStatus.code ?? 0) : '<deferred>'}"`,
  ]
  return `${formatMicroTime(receivedMs).replace(/\.?0*Z$/, 'Z')} AUDIT: ${parts.join(' ')}`
}
