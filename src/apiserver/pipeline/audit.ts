/**
 * Writes down who asked for what and how it ended (L3), as audit.k8s.io/v1 Events; where they go is the sink's matter, and without a sink
 * nothing is made. Levels beyond Metadata, which hold the bodies too, are not built.
 * Upstream: apiserver/pkg/endpoints/filters/audit.go, pkg/audit.
 */
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { formatMicroTime } from '#base/time'
import { statusOf } from '../answer.ts'
import { requestUri, type ServerRequest, type UserInfo } from '../request.ts'
import { type Handler, isLongRunning, type Stage } from './stage.ts'

export interface AuditSink {
  /** None: the request leaves no trace. Asked once per request, when its user is known, or when it is refused without one. */
  level(request: ServerRequest): 'None' | 'Metadata'
  /** One Event as JSON, without a line end. Must not throw, and must not wait. */
  write(event: string): void
}

type AuditStage = 'RequestReceived' | 'ResponseStarted' | 'ResponseComplete' | 'Panic'

export function auditStage(sink: AuditSink | undefined, clock: Clock): Stage {
  return {
    name: 'audit',
    handle: (request, next) => (!sink || sink.level(request) === 'None' ? next(request) : audited(sink, request, next)),
  }

  async function audited(to: AuditSink, request: ServerRequest, next: Handler) {
    const write = (stage: AuditStage, responseStatus?: object) => to.write(JSON.stringify(eventOf(request, stage, clock.now(), responseStatus)))
    write('RequestReceived')
    try {
      const answer = await next(request)
      const status = { metadata: {}, code: statusOf(answer) }
      if (answer.type === 'watch') {
        write('ResponseStarted', status)
        answer.session.whenClosed(() => write('ResponseComplete', status))
      } else write(isLongRunning(request) ? 'ResponseStarted' : 'ResponseComplete', status)
      return answer
    } catch (error) {
      if (isStatus(error)) {
        const { status, message, reason, code } = error.toStatus()
        write('ResponseComplete', { metadata: {}, status, message, reason, code })
      } else write('Panic', { metadata: {}, status: 'Failure', reason: 'InternalError', code: 500 })
      throw error
    }
  }
}

/** The one event of a request that is refused before its user is known. */
export function auditRefusal(sink: AuditSink | undefined, request: ServerRequest, nowMs: number, refusal: { message: string; code: number }): void {
  if (!sink || sink.level(request) === 'None') return
  sink.write(JSON.stringify(eventOf(request, 'ResponseStarted', nowMs, { metadata: {}, ...refusal })))
}

function eventOf(request: ServerRequest, stage: AuditStage, nowMs: number, responseStatus: object | undefined): object {
  const { info, originalUser, user } = request
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: request.auditId,
    stage,
    requestURI: requestUri(request),
    verb: info?.verb,
    user: originalUser && userOf(originalUser),
    ...(user && user !== originalUser ? { impersonatedUser: userOf(user) } : {}),
    ...(request.impersonationConstraint ? { authenticationMetadata: { impersonationConstraint: request.impersonationConstraint } } : {}),
    sourceIPs: request.remoteAddress ? [request.remoteAddress] : undefined,
    userAgent: request.headers['user-agent'],
    ...(info?.isResourceRequest ? { objectRef: objectOf(info) } : {}),
    ...(responseStatus ? { responseStatus } : {}),
    requestReceivedTimestamp: formatMicroTime(request.receivedMs),
    stageTimestamp: formatMicroTime(nowMs),
  }
}

function userOf({ name, uid, groups, extra }: UserInfo): object {
  return { username: name, uid, groups, extra }
}

function objectOf(info: NonNullable<ServerRequest['info']>): object {
  const { resource, namespace, name, apiGroup, apiVersion, subresource } = info
  const filled = Object.entries({ resource, namespace, name, apiGroup, apiVersion, subresource }).filter(([, value]) => value !== '')
  return Object.fromEntries(filled)
}
