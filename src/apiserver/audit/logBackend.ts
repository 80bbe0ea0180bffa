/** Writes audit events as lines (L3). Upstream: apiserver/plugin/pkg/audit/log. */
import { printable } from '#base/printable'
import type { AuditBackend, ReportLoss } from './backend.ts'
import type { AuditEvent } from './event.ts'

export const logFormats = ['legacy', 'json'] as const
export type LogFormat = (typeof logFormats)[number]

/** A file or a stream, as the composition root opened it. */
export interface LineWriter {
  /** Bound of a line, its end included. Absent: no bound. */
  readonly mostLineBytes?: number | undefined
  /** Writes whole lines. Returns a promise if it does not block on the disk. @throws Error */
  write(text: string): void | Promise<void>
  close(): Promise<void>
}

/** The most bytes that UTF-8 takes for a UTF-16 unit. */
const bytesOfCharacter = 3

export function createLogBackend(writer: LineWriter, format: LogFormat, reportLoss: ReportLoss): AuditBackend {
  const { mostLineBytes = Number.POSITIVE_INFINITY } = writer
  const failed = (error: unknown, events: readonly AuditEvent[]) => {
    reportLoss('log', (error as Error).message, events)
    return false
  }
  const fits = (line: string, event: AuditEvent): boolean => {
    if (line.length * bytesOfCharacter <= mostLineBytes) return true
    const bytes = Buffer.byteLength(line)
    return bytes <= mostLineBytes || failed(new Error(`write length ${bytes} exceeds maximum file size ${mostLineBytes}`), [event])
  }
  return {
    process(events) {
      let text = ''
      let areAll = true
      for (const event of events) {
        const line = `${printable(format === 'json' ? event.json() : event.legacy())}\n`
        if (fits(line, event)) text += line
        else areAll = false
      }
      if (text === '') return areAll
      try {
        const done = writer.write(text)
        return done
          ? done.then(
              () => areAll,
              (error: unknown) => failed(error, events),
            )
          : areAll
      } catch (error) {
        return failed(error, events)
      }
    },
    close: () => writer.close(),
  }
}
