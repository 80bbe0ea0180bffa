/** The receiver of the pipeline's audit events (L3); auditSink.ts makes one of a policy and backends. */
import type { ServerRequest } from '../core/request.ts'
import type { AuditEvent, AuditRule } from './event.ts'
import type { AuditTexts } from './texts.ts'

export interface AuditSink {
  /** Undefined: the request is not audited. Called once per request, when its user is known or authentication has failed. */
  rule(request: ServerRequest): AuditRule | undefined
  /** False: the event is lost, and the request must be refused. The pipeline awaits a promise. Must not throw. */
  process(event: AuditEvent): boolean | Promise<boolean>
  /** Texts that its events share. */
  readonly texts: AuditTexts
  /** Writes buffered events at once. Called before an answer is sent. */
  flush?(): void
  /** Counts a request that was refused because its first event was lost. */
  rejected?(): void
  /** Writes buffered events and ends. */
  close?(): Promise<void>
}
