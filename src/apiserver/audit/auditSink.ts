/** Combines the policy and the backends for the pipeline's audit stage (L3). Upstream: apiserver/pkg/audit/metrics.go. */
import type { CounterSeries, Metrics } from '#base/metrics'
import type { AuditBackend } from './backend.ts'
import type { AuditPolicy } from './policy.ts'
import type { AuditSink } from './sink.ts'
import { AuditTexts } from './texts.ts'

export function createAuditSink(policy: AuditPolicy, backend: AuditBackend, metrics: Metrics): AuditSink {
  const events = metrics.counter({ name: 'apiserver_audit_event_total', help: 'Audit events made and handed to the backend.' }).series({})
  const levels = metrics.counter({ name: 'apiserver_audit_level_total', help: 'Requests by the level that the policy gave them.', labels: ['level'] })
  const rejected = metrics.counter({ name: 'apiserver_audit_requests_rejected_total', help: 'Requests refused because they could not be audited.' }).series({})
  const byLevel = new Map<string, CounterSeries>()
  const count = (level: string) => {
    const series = byLevel.get(level) ?? levels.series({ level })
    byLevel.set(level, series)
    series.inc()
  }
  return {
    rule(request) {
      const rule = policy.ruleFor(request)
      count(rule?.level ?? 'None')
      return rule
    },
    texts: new AuditTexts(),
    process(event) {
      events.inc()
      return backend.process([event])
    },
    flush: () => backend.flush?.(),
    rejected: () => rejected.inc(),
    close: () => backend.close(),
  }
}
