/**
 * Numbers of reading and writing requests, waiting and executing, as fractions of the server's seats (L3).
 * Upstream: apiserver/pkg/server/filters/priority-and-fairness.go, read_vs_write_current_requests of pkg/util/flowcontrol/metrics.
 */
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import { TimedRatio } from './timedRatio.ts'

export type Phase = 'waiting' | 'executing'

export interface ReadWriteRatios {
  /** @param by 1: one more, -1: one less */
  add(phase: Phase, verb: string, by: 1 | -1): void
}

const reading: ReadonlySet<string> = new Set(['get', 'list', 'watch'])
const buckets = [0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1]

export function readWriteRatios(metrics: Metrics, clock: Clock, serverLimit: number): ReadWriteRatios {
  const histogram = metrics.histogram({
    name: 'apiserver_flowcontrol_read_vs_write_current_requests',
    help: 'At the end of every nanosecond, the requests that wait or are worked on, as a fraction of the limit.',
    labels: ['phase', 'request_kind'],
    buckets,
  })
  const kindOf = (phase: Phase, kind: string) => {
    const ratio = new TimedRatio(histogram.series({ phase, request_kind: kind }), clock.monotonicMs())
    ratio.setDenominator(Math.max(1, serverLimit), clock.monotonicMs())
    return { ratio, count: 0 }
  }
  const phaseOf = (phase: Phase) => ({ readOnly: kindOf(phase, 'readOnly'), mutating: kindOf(phase, 'mutating') })
  const phases = { waiting: phaseOf('waiting'), executing: phaseOf('executing') }
  return {
    add(phase, verb, by) {
      const kind = reading.has(verb) ? phases[phase].readOnly : phases[phase].mutating
      kind.count += by
      kind.ratio.set(kind.count, clock.monotonicMs())
    },
  }
}
