/** The chain of audit backends (L3): each has one task, and passes events to the next. Upstream: apiserver/pkg/audit/types.go, union.go. */
import type { Logger } from '#base/log'
import type { CounterSeries, Metrics } from '#base/metrics'
import type { AuditEvent } from './event.ts'

export interface AuditBackend {
  /** False: some events were lost. In blocking mode the request awaits a promise. Never throws. */
  process(events: readonly AuditEvent[]): boolean | Promise<boolean>
  /** Passes on events that are kept until the end of the turn. Absent: none are kept. */
  flush?(): void
  /** Passes on kept events, and resolves when they are written. */
  close(): Promise<void>
}

/** Counts and logs events that could not be written. */
export type ReportLoss = (plugin: 'buffered' | 'log' | 'truncate' | 'webhook', error: string, lost: readonly AuditEvent[]) => void

export function lossReporter(metrics: Metrics, log: Logger): ReportLoss {
  const errors = metrics.counter({ name: 'apiserver_audit_error_total', help: 'Audit events that could not be written down, by plugin.', labels: ['plugin'] })
  const series = new Map<string, CounterSeries>()
  return (plugin, error, lost) => {
    const counter = series.get(plugin) ?? errors.series({ plugin })
    series.set(plugin, counter)
    counter.inc(lost.length)
    log.error(new Error(error), 'Audit events were lost', { plugin, events: lost.length, first: lost[0]?.legacy() })
  }
}

/** For backends other than a file in upstream's mode `blocking`: a request waits for the backend, but does not fail with it. */
export function ignoringErrors(backend: AuditBackend): AuditBackend {
  return {
    process(events) {
      const result = backend.process(events)
      return result instanceof Promise ? result.then(() => true) : true
    },
    close: () => backend.close(),
  }
}

/** Passes each event to all backends. */
export function union(backends: readonly AuditBackend[]): AuditBackend {
  const [only] = backends
  if (only && backends.length === 1) return only
  return {
    process(events) {
      const results = backends.map((backend) => backend.process(events))
      if (results.some((result) => result instanceof Promise)) return Promise.all(results).then((all) => all.every(Boolean))
      return results.every(Boolean)
    },
    flush() {
      for (const backend of backends) backend.flush?.()
    },
    async close() {
      await Promise.all(backends.map((backend) => backend.close()))
    },
  }
}
