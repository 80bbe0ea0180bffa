/** Writes audit events as lines (L3). Upstream: apiserver/plugin/pkg/audit/log. */
import type { AuditBackend, ReportLoss } from './backend.ts'
import type { AuditEvent } from './event.ts'

export const logFormats = ['legacy', 'json'] as const
export type LogFormat = (typeof logFormats)[number]

/** A file or a stream, as the composition root opened it. */
export interface LineWriter {
  /** Whole lines. Returns a promise where it does not wait for the disk. @throws Error */
  write(text: string): void | Promise<void>
  close(): Promise<void>
}

export function createLogBackend(writer: LineWriter, format: LogFormat, reportLoss: ReportLoss): AuditBackend {
  const failed = (error: unknown, events: readonly AuditEvent[]) => {
    reportLoss('log', (error as Error).message, events)
    return false
  }
  return {
    process(events) {
      let text = ''
      for (const event of events) text += `${format === 'json' ? event.json() : event.legacy()}\n`
      try {
        const done = writer.write(text)
        return done
          ? done.then(
              () => true,
              (error: unknown) => failed(error, events),
            )
          : true
      } catch (error) {
        return failed(error, events)
      }
    },
    close: () => writer.close(),
  }
}
