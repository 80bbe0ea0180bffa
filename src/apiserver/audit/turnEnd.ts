/**
 * Keeps the audit events of one turn of the event loop and hands them on together (L3): a log is written once, however many requests came in at
 * the same time. Whoever answers a request asks for it first, so that no client learns what is not written down; at the latest it happens when
 * the turn is over.
 */
import { append } from '#base/extremes'
import type { AuditBackend } from './backend.ts'
import type { AuditEvent } from './event.ts'

/** @param delegate tells of its losses itself, and does not wait */
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
