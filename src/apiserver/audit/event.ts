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

export interface EventFields {
  readonly level: AuditLevel
  readonly auditID: string
  readonly stage: AuditStageName
  readonly requestURI: string
  readonly verb: string
  readonly user: UserInfo | undefined
  readonly impersonatedUser: UserInfo | undefined
  /** The narrow verb that allowed the impersonation. */
  readonly impersonationConstraint?: string | undefined
  readonly sourceIPs: readonly string[]
  readonly userAgent: string | undefined
  readonly objectRef: ObjectReference | undefined
  readonly responseStatus: ResponseStatus | undefined
  /** JSON. */
  readonly requestObject: string | undefined
  /** JSON, made when it is wanted. */
  readonly responseObject: (() => string | undefined) | undefined
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
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
  const { user, impersonatedUser, impersonationConstraint, sourceIPs, userAgent, objectRef, responseStatus, requestObject, annotations } = fields
  const responseObject = fields.responseObject?.()
  let text = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"${fields.level}","auditID":${quoted(fields.auditID)},"stage":"${fields.stage}"`
  text += `,"requestURI":${quoted(fields.requestURI)},"verb":${quoted(fields.verb)},"user":${user ? quoted(userOf(user)) : '{}'}`
  if (impersonatedUser) text += `,"impersonatedUser":${quoted(userOf(impersonatedUser))}`
  if (impersonationConstraint) text += `,"authenticationMetadata":${quoted({ impersonationConstraint })}`
  if (sourceIPs.length > 0) text += `,"sourceIPs":${quoted(sourceIPs)}`
  if (userAgent) text += `,"userAgent":${quoted(userAgent)}`
  if (objectRef) text += `,"objectRef":${quoted(objectRef)}`
  if (responseStatus) text += `,"responseStatus":${quoted(responseStatus)}`
  if (requestObject) text += `,"requestObject":${requestObject}`
  if (responseObject) text += `,"responseObject":${responseObject}`
  text += `,"requestReceivedTimestamp":"${formatMicroTime(fields.receivedMs)}","stageTimestamp":"${formatMicroTime(fields.stageMs)}"`
  return annotations ? `${text},"annotations":${quoted(annotations)}}` : `${text}}`
}

const quoted = (value: unknown): string => JSON.stringify(value)

function userOf({ name, uid, groups, extra }: UserInfo): object {
  return { username: name, uid: uid || undefined, groups: groups.length > 0 ? groups : undefined, extra }
}

function legacyText({
  receivedMs,
  auditID,
  stage,
  sourceIPs,
  verb,
  user,
  impersonatedUser,
  userAgent,
  objectRef,
  requestURI,
  responseStatus,
}: EventFields): string {
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
