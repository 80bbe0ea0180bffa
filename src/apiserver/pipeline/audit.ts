/**
 * Writes down who asked for what and how it ended (L3), as audit.k8s.io/v1 Events; what is worth it and where they go is the sink's matter, and
 * without a sink nothing is made. Upstream: apiserver/pkg/endpoints/filters/audit.go.
 */
import { isStatus, type Status, StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { type Answer, statusOf } from '../answer.ts'
import type { AuditEvent, AuditRule, AuditStageName, ResponseStatus } from '../audit/event.ts'
import { AuditRecord } from '../audit/record.ts'
import type { ServerRequest } from '../request.ts'
import { type Handler, isLongRunning, type Stage } from './stage.ts'

export interface AuditSink {
  /** Undefined: the request leaves no trace. Asked once per request, when its user is known, or when it is refused without one. */
  rule(request: ServerRequest): AuditRule | undefined
  /** False: it is lost, and nothing may happen without it. A promise: whoever asks waits for it. Must not throw. */
  process(event: AuditEvent): boolean | Promise<boolean>
  /** A request was refused because its first event was lost. */
  rejected?(): void
  /** Writes down what it still has. */
  close?(): Promise<void>
}

type Emit = (stage: AuditStageName, responseStatus?: ResponseStatus, answer?: Answer) => boolean | Promise<boolean>

export function auditStage(sink: AuditSink | undefined, clock: Clock): Stage {
  return {
    name: 'audit',
    handle(request, next) {
      const rule = sink?.rule(request)
      if (!sink || !rule) return next(request)
      const record = new AuditRecord(request, rule)
      request.audit = record
      request.admissionAnnotations = []
      const emit: Emit = (stage, responseStatus, answer) => {
        const event = record.event(stage, clock.now(), responseStatus, answer)
        return event ? sink.process(event) : true
      }
      return audited(sink, emit, request, next)
    },
  }
}

async function audited(sink: AuditSink, emit: Emit, request: ServerRequest, next: Handler): Promise<Answer> {
  if (!(await emit('RequestReceived'))) {
    sink.rejected?.()
    throw new StatusError('InternalError', 'failed to store audit event')
  }
  let answer: Answer
  try {
    answer = await next(request)
  } catch (error) {
    await failed(emit, request, error)
    throw error
  }
  return answered(emit, request, answer)
}

async function failed(emit: Emit, request: ServerRequest, error: unknown): Promise<void> {
  if (!isStatus(error)) {
    await emit('Panic', { metadata: {}, status: 'Failure', message: `APIServer panic'd: ${(error as Error).message}`, reason: 'InternalError', code: 500 })
    return
  }
  const value = error.toStatus()
  const refusal: Answer = { type: 'value', status: error.code, value }
  if (isLongRunning(request)) await emit('ResponseStarted', shown(value, error.code), refusal)
  await emit('ResponseComplete', shown(value, error.code), refusal)
}

async function answered(emit: Emit, request: ServerRequest, answer: Answer): Promise<Answer> {
  const code = statusOf(answer)
  const status = answer.type === 'value' && isStatusObject(answer.value) ? shown(answer.value, code) : { metadata: {}, code }
  if (isLongRunning(request)) await emit('ResponseStarted', status, answer)
  const complete = () => void emit('ResponseComplete', status, answer)
  if (answer.type === 'tunnel') {
    if (!isLongRunning(request)) await emit('ResponseStarted', status)
    return { ...answer, connect: (socket, head) => answer.connect(socket, head).finally(complete) }
  }
  if (answer.type === 'watch') answer.session.whenClosed(complete)
  else if (answer.type === 'stream') answer.body.once('close', complete)
  else await emit('ResponseComplete', status, answer)
  return answer
}

function isStatusObject(value: unknown): value is Status {
  return typeof value === 'object' && value !== null && (value as Partial<Status>).kind === 'Status'
}

/** Of a Status only what is bounded. */
function shown({ status, message, reason, details }: Partial<Status>, code: number): ResponseStatus {
  return { metadata: {}, status: status || undefined, message: message || undefined, reason: reason || undefined, details, code }
}

/** The one event of a request that is refused before its user is known. */
export function auditRefusal(sink: AuditSink | undefined, request: ServerRequest, nowMs: number, refusal: { message: string; code: number }): void {
  const rule = sink?.rule(request)
  const event = rule && new AuditRecord(request, rule).event('ResponseStarted', nowMs, { metadata: {}, ...refusal })
  if (event) void sink?.process(event)
}
