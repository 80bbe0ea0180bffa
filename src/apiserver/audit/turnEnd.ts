/**
 * Collects the audit events of one turn of the event loop and passes them on together (L3): a log is written once, however many requests arrived
 * at the same time. The server flushes before it answers a request, so that no client gets an answer that is not logged; at the latest the end of
 * the turn flushes.
 */
import { append } from '#base/extremes'
import type { AuditBackend } from './backend.ts'
import type { AuditEvent } from './event.ts'

/** @param delegate reports its own losses, and does not wait */
export function createTurnEnd(delegate: AuditBackend): AuditBackend {
  let kept: AuditEvent[] = []
  const flush = () => {
    if (kept.length === 0) return
    const events = kept
    kept = []
    void delegate.process(events)
  }
  return {
    process(events) {
      if (kept.length === 0) setImmediate(flush)
      append(kept, events)
      return true
    },
    flush,
    close() {
      flush()
      return delegate.close()
    },
  }
}
