/** What /skiff/clock answers and takes (L1): the virtual time of a cluster; for the server and for the page. */

export const clockPath = '/skiff/clock'

/** Beyond it, components of a cluster with many objects may take longer than the time that passes. */
export const mostSpeed = 3_600
export const mostStepMs = 86_400_000

export interface ClockState {
  /** The cluster's time, RFC 3339. */
  readonly now: string
  /** Seconds that pass in the cluster in one second of the machine, at most; 0: its time stands still. */
  readonly speed: number
  /** What is left of the steps that were asked for. */
  readonly stepMs: number
  /** Why the time was stopped by the cluster itself: a component that never comes to rest. */
  readonly failure?: string | undefined
}

/** One of both. */
export interface ClockChange {
  /** From 0, which also drops the steps that are left, to {@link mostSpeed}. */
  readonly speed?: number | undefined
  /** Lets so much time pass once, as fast as the cluster can; from 1 to {@link mostStepMs} together with what is left. */
  readonly stepMs?: number | undefined
}
