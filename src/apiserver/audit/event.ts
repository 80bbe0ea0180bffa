/**
 * One entry of the audit log (L3): audit.k8s.io/v1 Event. What it says is fixed when it is made; its text is made when somebody wants it, which
 * for a batch is after the request. Bodies are texts already, or are taken from the answer as they are.
 * Upstream: apiserver/pkg/apis/audit/v1/types.go, pkg/audit/format.go.
 */
import { formatMicroTime } from '#base/time'
import type { UserInfo } from '../request.ts'

export const auditLevels = ['None', 'Metadata', 'Request', 'RequestResponse'] as const
export type AuditLevel = (typeof auditLevels)[number]
export const auditStages = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'] as const
export type AuditStageName = (typeof auditStages)[number]

/** What the policy says about a request that leaves a trace. */
export interface AuditRule {
  readonly level: Exclude<AuditLevel, 'None'>
  readonly omitStages: ReadonlySet<AuditStageName>
  readonly omitManagedFields: boolean
}

export interface ObjectReference {
  readonly resource?: string | undefined
  readonly namespace?: string | undefined
  readonly name?: string | undefined
  readonly uid?: string | undefined
  readonly apiGroup?: string | undefined
  readonly apiVersion?: string | undefined
  readonly resourceVersion?: string | undefined
  readonly subresource?: string | undefined
}

export interface ResponseStatus {
  readonly metadata: object
  readonly status?: string | undefined
  readonly message?: string | undefined
  readonly reason?: string | undefined
  readonly details?: unknown
  readonly code?: number | undefined
}

/** What all events of a request say. Their texts are made once, by the first that is written. */
export class RequestFacts {
  readonly level: AuditLevel
  readonly auditID: string
  readonly requestURI: string
  readonly verb: string
  readonly user: UserInfo | undefined
  readonly sourceIPs: readonly string[]
  readonly userAgent: string | undefined
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  #who: string | undefined
  #wherefrom: string | undefined
  #received: string | undefined

  constructor(of: Pick<RequestFacts, 'level' | 'auditID' | 'requestURI' | 'verb' | 'user' | 'sourceIPs' | 'userAgent' | 'receivedMs'>) {
    this.level = of.level
    this.auditID = of.auditID
    this.requestURI = of.requestURI
    this.verb = of.verb
    this.user = of.user
    this.sourceIPs = of.sourceIPs
    this.userAgent = of.userAgent
    this.receivedMs = of.receivedMs
  }

  get who(): string {
    this.#who ??= `,"requestURI":${quoted(this.requestURI)},"verb":${quoted(this.verb)},"user":${this.user ? quoted(userOf(this.user)) : '{}'}`
    return this.#who
  }

  get wherefrom(): string {
    const { sourceIPs, userAgent } = this
    this.#wherefrom ??= `${sourceIPs.length > 0 ? `,"sourceIPs":${quoted(sourceIPs)}` : ''}${userAgent ? `,"userAgent":${quoted(userAgent)}` : ''}`
    return this.#wherefrom
  }

  get received(): string {
    this.#received ??= formatMicroTime(this.receivedMs)
    return this.#received
  }
}

export interface EventFields {
  readonly request: RequestFacts
  readonly stage: AuditStageName
  readonly impersonatedUser: UserInfo | undefined
  /** The narrow verb that allowed the impersonation. */
  readonly impersonationConstraint?: string | undefined
  readonly objectRef: ObjectReference | undefined
  readonly responseStatus: ResponseStatus | undefined
  /** JSON. */
  readonly requestObject: string | undefined
  /** JSON, made when it is wanted. */
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

  /** In one line, without its end. */
  json(): string {
    this.#json ??= eventJson(this.fields)
    return this.#json
  }

  /** In one line of text, without its end. */
  legacy(): string {
    return legacyText(this.fields)
  }

  /** The same without bodies. */
  withoutBodies(): AuditEvent {
    const annotations = { ...this.fields.annotations, ...truncated }
    return new AuditEvent({ ...this.fields, requestObject: undefined, responseObject: undefined, annotations })
  }
}

/** Put together by hand: writing one object with everything took three times as long. */
function eventJson(fields: EventFields): string {
  const { request, stage, impersonatedUser, impersonationConstraint, objectRef, responseStatus, requestObject, annotations } = fields
  const responseObject = fields.responseObject?.()
  let text = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"${request.level}","auditID":${quoted(request.auditID)},"stage":"${stage}"${request.who}`
  if (impersonatedUser) text += `,"impersonatedUser":${quoted(userOf(impersonatedUser))}`
  if (impersonationConstraint) text += `,"authenticationMetadata":${quoted({ impersonationConstraint })}`
  text += request.wherefrom
  if (objectRef) text += `,"objectRef":${quoted(objectRef)}`
  if (responseStatus) text += `,"responseStatus":${statusText(responseStatus)}`
  if (requestObject) text += `,"requestObject":${requestObject}`
  if (responseObject) text += `,"responseObject":${responseObject}`
  const reached = fields.stageMs === request.receivedMs ? request.received : formatMicroTime(fields.stageMs)
  text += `,"requestReceivedTimestamp":"${request.received}","stageTimestamp":"${reached}"`
  return annotations ? `${text},"annotations":${quoted(annotations)}}` : `${text}}`
}

/** Most say no more than a code. */
function statusText(status: ResponseStatus): string {
  return status.status === undefined && status.message === undefined ? `{"metadata":{},"code":${status.code}}` : quoted(status)
}

const quoted = (value: unknown): string => JSON.stringify(value)

function userOf({ name, uid, groups, extra }: UserInfo): object {
  return { username: name, uid: uid || undefined, groups: groups.length > 0 ? groups : undefined, extra }
}

function legacyText({ request, stage, impersonatedUser, objectRef, responseStatus }: EventFields): string {
  const { auditID, sourceIPs, verb, user, userAgent, requestURI, receivedMs } = request
  const listed = (groups: readonly string[]) => quoted(groups.map((group) => quoted(group)).join(','))
  const parts = [
    `id=${quoted(auditID)}`,
    `stage=${quoted(stage)}`,
    `ip=${quoted(sourceIPs[0] ?? '<unknown>')}`,
    `method=${quoted(verb)}`,
    `user=${quoted(user?.name || '<none>')}`,
    `groups=${user?.name && user.groups.length > 0 ? listed(user.groups) : '"<none>"'}`,
    `as=${quoted(impersonatedUser?.name ?? '<self>')}`,
    `asgroups=${impersonatedUser ? listed(impersonatedUser.groups) : '"<lookup>"'}`,
    `user-agent=${quoted(userAgent ?? '')}`,
    `namespace=${quoted(objectRef?.namespace || '<none>')}`,
    `uri=${quoted(requestURI)}`,
    `response="${responseStatus ? (responseStatus.code ?? 0) : '<deferred>'}"`,
  ]
  return `${formatMicroTime(receivedMs).replace(/\.?0*Z$/, 'Z')} AUDIT: ${parts.join(' ')}`
}
