/**
 * Audits requests as audit.k8s.io/v1 Events (L3): the user, the request and the result. The sink decides which are logged and where; without a sink no
 * events are made. Upstream: apiserver/pkg/endpoints/filters/audit.go.
 */
import { isStatus, type Status, StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { AuditEvent, AuditStageName, ResponseStatus } from '../audit/event.ts'
import { AuditRecord } from '../audit/record.ts'
import type { AuditSink } from '../audit/sink.ts'
import { type Answer, statusOf } from '../core/answer.ts'
import type { ServerRequest } from '../core/request.ts'
import { type Handler, isLongRunning, type Stage } from '../core/stage.ts'

export function auditStage(sink: AuditSink | undefined, clock: Clock): Stage {
  return {
    name: 'audit',
    handle(request, next) {
      const rule = sink?.rule(request)
      if (!sink || !rule) return next(request)
      const record = new AuditRecord(request, rule, sink.texts)
      request.audit = record
      request.admissionAnnotations = []
      return new AuditedRequest(sink, clock, request, record).run(next)
    },
  }
}

/** Audits one request. It waits for the sink only if that returns a promise. */
class AuditedRequest {
  readonly #sink: AuditSink
  readonly #clock: Clock
  readonly #request: ServerRequest
  readonly #record: AuditRecord

  constructor(sink: AuditSink, clock: Clock, request: ServerRequest, record: AuditRecord) {
    this.#sink = sink
    this.#clock = clock
    this.#request = request
    this.#record = record
  }

  run(next: Handler): Promise<Answer> | Answer {
    const stored = this.#process(this.#record.event('RequestReceived', this.#request.receivedMs))
    return stored instanceof Promise ? stored.then((late) => this.#begin(late, next)) : this.#begin(stored, next)
  }

  #begin(stored: boolean, next: Handler): Promise<Answer> | Answer {
    if (!stored) {
      this.#sink.rejected?.()
      throw new StatusError('InternalError', 'failed to store audit event')
    }
    let work: Promise<Answer> | Answer
    try {
      work = next(this.#request)
    } catch (error) {
      return this.#failed(error)
    }
    if (!(work instanceof Promise)) return this.#answered(work)
    return work.then(
      (answer) => this.#answered(answer),
      (error: unknown) => this.#failed(error),
    )
  }

  #emit(stage: AuditStageName, responseStatus?: ResponseStatus, answer?: Answer): boolean | Promise<boolean> {
    return this.#process(this.#record.event(stage, this.#clock.now(), responseStatus, answer))
  }

  #process(event: AuditEvent | undefined): boolean | Promise<boolean> {
    return event ? this.#sink.process(event) : true
  }

  #complete(status: ResponseStatus, answer: Answer): boolean | Promise<boolean> {
    const nowMs = this.#clock.now()
    this.#record.noteDeprecation()
    this.#record.noteLatency(nowMs)
    return this.#process(this.#record.event('ResponseComplete', nowMs, status, answer))
  }

  async #failed(error: unknown): Promise<Answer> {
    if (!isStatus(error)) {
      const message = `APIServer panic'd: ${(error as Error).message}`
      await this.#emit('Panic', { metadata: {}, status: 'Failure', message, reason: 'InternalError', code: 500 })
      throw error
    }
    const value = error.toStatus()
    const refusal: Answer = { type: 'value', status: error.code, value }
    if (isLongRunning(this.#request)) await this.#emit('ResponseStarted', shown(value, error.code), refusal)
    await this.#complete(shown(value, error.code), refusal)
    throw error
  }

  #answered(answer: Answer): Promise<Answer> | Answer {
    const code = statusOf(answer)
    const status = answer.type === 'value' && isStatusObject(answer.value) ? shown(answer.value, code) : { metadata: {}, code }
    if (isLongRunning(this.#request) || answer.type === 'tunnel') return this.#started(answer, status)
    if (answer.type === 'watch' || answer.type === 'stream') return this.#followed(answer, status)
    const stored = this.#complete(status, answer)
    return stored instanceof Promise ? stored.then(() => answer) : answer
  }

  async #started(answer: Answer, status: ResponseStatus): Promise<Answer> {
    await this.#emit('ResponseStarted', status, answer.type === 'tunnel' ? undefined : answer)
    const followed = this.#followed(answer, status)
    if (followed === answer && !goesOn(answer)) await this.#complete(status, answer)
    return followed
  }

  /** The last event is written when the stream ends. */
  #followed(answer: Answer, status: ResponseStatus): Answer {
    const complete = () => void this.#complete(status, answer)
    if (answer.type === 'watch') answer.session.whenClosed(complete)
    else if (answer.type === 'stream') answer.body.once('close', complete)
    else if (answer.type === 'tunnel') return { ...answer, connect: (...connection) => answer.connect(...connection).finally(complete) }
    return answer
  }
}

function goesOn({ type }: Answer): boolean {
  return type === 'watch' || type === 'stream' || type === 'tunnel'
}

function isStatusObject(value: unknown): value is Status {
  return typeof value === 'object' && value !== null && (value as Partial<Status>).kind === 'Status'
}

/** The members of a Status that are bounded in size. */
function shown({ status, message, reason, details }: Partial<Status>, code: number): ResponseStatus {
  return { metadata: {}, status: status || undefined, message: message || undefined, reason: reason || undefined, details, code }
}

/** The one event of a request that is refused before its user is known. */
export function auditRefusal(sink: AuditSink | undefined, request: ServerRequest, nowMs: number, refusal: { message: string; code: number }): void {
  const rule = sink?.rule(request)
  if (!sink || !rule) return
  const event = new AuditRecord(request, rule, sink.texts).event('ResponseStarted', nowMs, { metadata: {}, ...refusal })
  if (event) void sink.process(event)
}
