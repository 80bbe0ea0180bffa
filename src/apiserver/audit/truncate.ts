/**
 * Keeps audit events and batches below a size (L3): drops bodies first, then the event. Upstream: apiserver/plugin/pkg/audit/truncate.
 */
import type { AuditBackend, ReportLoss } from './backend.ts'
import type { AuditEvent } from './event.ts'

export interface TruncateConfig {
  readonly maxEventBytes: number
  readonly maxBatchBytes: number
}

export function createTruncateBackend(delegate: AuditBackend, { maxEventBytes, maxBatchBytes }: TruncateConfig, reportLoss: ReportLoss): AuditBackend {
  const fitting = (events: readonly AuditEvent[]): { event: AuditEvent; bytes: number }[] => {
    const lost: AuditEvent[] = []
    const kept = events.flatMap((whole) => {
      const hasBodies = whole.fields.request.level !== 'Metadata' && sizeOf(whole) > maxEventBytes
      const event = hasBodies ? whole.withoutBodies() : whole
      const bytes = sizeOf(event)
      if (bytes <= maxEventBytes) return [{ event, bytes }]
      lost.push(event)
      return []
    })
    if (lost.length > 0) reportLoss('truncate', 'event is too large even after truncating', lost)
    return kept
  }
  return {
    process(events) {
      const batches: AuditEvent[][] = []
      let bytesOfLast = 0
      for (const { event, bytes } of fitting(events)) {
        const last = batches.at(-1)
        if (last && bytesOfLast + bytes <= maxBatchBytes) {
          last.push(event)
          bytesOfLast += bytes
        } else {
          batches.push([event])
          bytesOfLast = bytes
        }
      }
      const results = batches.map((batch) => delegate.process(batch))
      if (results.some((result) => result instanceof Promise)) return Promise.all(results).then((all) => all.every(Boolean))
      return results.every(Boolean)
    },
    flush: () => delegate.flush?.(),
    close: () => delegate.close(),
  }
}

function sizeOf(event: AuditEvent): number {
  return Buffer.byteLength(event.json()) + 1
}
