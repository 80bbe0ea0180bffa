/**
 * Results of the probes of this node's containers for `/metrics/probes` (L3): by probe of a pod, until the pod is removed.
 * Upstream: kubelet/prober/prober_manager.go, ProberResults and ProberDuration (v1.36).
 */
import { labelsText, type MetricFamily } from '#base/metricFamily'
import type { FrozenPod } from '../core/containers.ts'
import type { ProbeResult } from './prober.ts'
import type { ProbeKind } from './probeState.ts'

export interface ProbeMetrics {
  observe(pod: FrozenPod, container: string, kind: ProbeKind, outcome: ProbeResult['outcome'], seconds: number): void
  /** The pod is removed. */
  remove(uid: string): void
  families(): MetricFamily[]
}

interface Tally {
  /** With the type of the probe. */
  readonly labels: string
  readonly uid: string
  readonly results: Record<Counted, number>
  /** By bucket, not summed up. */
  readonly counts: number[]
  seconds: number
}

export const probeLabel: Readonly<Record<ProbeKind, string>> = { startup: 'Startup', liveness: 'Liveness', readiness: 'Readiness' }
const resultLabel = { Success: 'successful', Failure: 'failed', Unknown: 'unknown' } as const
type Counted = keyof typeof resultLabel
/** Prometheus' default bounds, in seconds. */
const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export function createProbeMetrics(): ProbeMetrics {
  /** By pod uid, then by container and kind. */
  const pods = new Map<string, Map<string, Tally>>()
  return {
    observe: (pod, container, kind, outcome, seconds) => {
      const { namespace, name, uid = '' } = pod.metadata
      const tallies = pods.get(uid) ?? new Map<string, Tally>()
      pods.set(uid, tallies)
      const key = `${container}/${kind}`
      const tally = tallies.get(key) ?? {
        labels: labelsText({ container, namespace: namespace ?? '', pod: name ?? '', probe_type: probeLabel[kind] }),
        uid,
        results: { Success: 0, Failure: 0, Unknown: 0 },
        counts: [...bounds, Number.POSITIVE_INFINITY].map(() => 0),
        seconds: 0,
      }
      tallies.set(key, tally)
      const counted = outcome === 'Warning' ? 'Success' : outcome
      tally.results[counted]++
      // Upstream measures the duration of successes and unknown results, not of failures.
      if (counted === 'Failure') return
      tally.seconds += seconds
      const bucket = bounds.findIndex((bound) => seconds <= bound)
      const at = bucket < 0 ? bounds.length : bucket
      tally.counts[at] = (tally.counts[at] ?? 0) + 1
    },
    remove: (uid) => void pods.delete(uid),
    families: () => familiesOf([...pods.values()].flatMap((tallies) => [...tallies.values()])),
  }
}

function familiesOf(tallies: readonly Tally[]): MetricFamily[] {
  const help = '[ALPHA] How long a probe took, in seconds.'
  const durations = tallies.map(({ labels, counts, seconds }) => ({ labels, counts, sum: seconds }))
  return [
    { name: 'prober_probe_duration_seconds', type: 'histogram', help, bounds, samples: durations },
    { name: 'prober_probe_total', type: 'counter', help: '[BETA] How many probes of a container there were, by result.', samples: tallies.flatMap(totals) },
  ]
}

function totals({ labels, uid, results }: Tally) {
  return (['Success', 'Failure', 'Unknown'] as const)
    .filter((outcome) => results[outcome] > 0)
    .map((outcome) => ({ labels: `${labels},${labelsText({ pod_uid: uid, result: resultLabel[outcome] })}`, value: results[outcome] }))
}
