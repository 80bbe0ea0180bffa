/**
 * Results of the probes of this node's containers for `/metrics/probes` (L3): by probe of a pod, until the pod is removed.
 * Upstream: kubelet/prober/prober_manager.go, ProberResults and ProberDuration (v1.36).
 */
import { familyText, labelPair, numberText, sampleLine } from '#base/prometheusText'
import type { FrozenPod } from '../core/containers.ts'
import type { ProbeResult } from './prober.ts'
import type { ProbeKind } from './probeState.ts'

export interface ProbeMetrics {
  observe(pod: FrozenPod, container: string, kind: ProbeKind, outcome: ProbeResult['outcome'], seconds: number): void
  /** The pod is removed. */
  remove(uid: string): void
  /** In Prometheus' text format. */
  text(): string
}

interface Tally {
  readonly labels: readonly string[]
  readonly uid: string
  readonly results: Record<Counted, number>
  readonly buckets: number[]
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
      const labels = [labelPair('container', container), labelPair('namespace', namespace ?? ''), labelPair('pod', name ?? '')]
      const tally = tallies.get(key) ?? {
        labels: [...labels, labelPair('probe_type', probeLabel[kind])],
        uid,
        results: { Success: 0, Failure: 0, Unknown: 0 },
        buckets: bounds.map(() => 0),
        seconds: 0,
      }
      tallies.set(key, tally)
      const counted = outcome === 'Warning' ? 'Success' : outcome
      tally.results[counted]++
      // Upstream measures the duration of successes and unknown results, not of failures.
      if (counted === 'Failure') return
      tally.seconds += seconds
      for (const [index, bound] of bounds.entries()) if (seconds <= bound) tally.buckets[index] = (tally.buckets[index] ?? 0) + 1
    },
    remove: (uid) => void pods.delete(uid),
    text: () => render([...pods.values()].flatMap((tallies) => [...tallies.values()])),
  }
}

const duration = 'prober_probe_duration_seconds'
const total = 'prober_probe_total'

function render(tallies: readonly Tally[]): string {
  return (
    familyText({ name: duration, type: 'histogram', help: '[ALPHA] How long a probe took, in seconds.' }, tallies.flatMap(durationLines)) +
    familyText({ name: total, type: 'counter', help: '[BETA] How many probes of a container there were, by result.' }, tallies.flatMap(totalLines))
  )
}

function durationLines({ labels, results, buckets, seconds }: Tally): string[] {
  const count = results.Success + results.Unknown
  const bucket = (bound: number, value: number) => sampleLine(`${duration}_bucket`, [...labels, labelPair('le', numberText(bound))], value)
  return [
    ...bounds.map((bound, index) => bucket(bound, buckets[index] ?? 0)),
    bucket(Number.POSITIVE_INFINITY, count),
    sampleLine(`${duration}_sum`, labels, seconds),
    sampleLine(`${duration}_count`, labels, count),
  ]
}

function totalLines({ labels, uid, results }: Tally): string[] {
  return (['Success', 'Failure', 'Unknown'] as const)
    .filter((outcome) => results[outcome] > 0)
    .map((outcome) => sampleLine(total, [...labels, labelPair('pod_uid', uid), labelPair('result', resultLabel[outcome])], results[outcome]))
}
