/** The state machine of one probe (L3, pure): thresholds, initial values, what a result means. Upstream: kubelet/prober/worker.go (v1.36). */
import type { Probe } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

export type ProbeKind = 'liveness' | 'readiness' | 'startup'
export type ProbeOutcome = 'Success' | 'Failure'

export interface ProbeState {
  /** What counts now; readiness starts as Failure, liveness as Success, startup as unknown. */
  readonly result: ProbeOutcome | undefined
  readonly last: ProbeOutcome | undefined
  readonly run: number
}

export function initialProbeState(kind: ProbeKind): ProbeState {
  return { result: kind === 'readiness' ? 'Failure' : kind === 'liveness' ? 'Success' : undefined, last: undefined, run: 0 }
}

/** The state after one more outcome: the result changes only when a threshold of equal outcomes in a row is reached. */
export function nextProbeState(state: ProbeState, outcome: ProbeOutcome, probe: Pick<Frozen<Probe>, 'failureThreshold' | 'successThreshold'>): ProbeState {
  const run = state.last === outcome ? state.run + 1 : 1
  const threshold = outcome === 'Success' ? (probe.successThreshold ?? 1) : (probe.failureThreshold ?? 3)
  return { last: outcome, run, result: run >= threshold ? outcome : state.result }
}

/** Liveness and startup probes rest after a failure until the container is replaced: a startup probe after its success too. */
export function probeIsDone(kind: ProbeKind, state: ProbeState): boolean {
  return (kind !== 'readiness' && state.result === 'Failure') || (kind === 'startup' && state.result === 'Success')
}
