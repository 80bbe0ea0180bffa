/**
 * The behaviour of a simulated container (L3), from code, a pod's annotations or defaults. Reading the annotations is
 * annotations.ts's work, putting the three together profile.ts's.
 */
import type { Duplex } from 'node:stream'
import type { ContainerFacts } from './facts.ts'

/** A container as behaviours see it. */
export interface SimulatedContainer {
  readonly namespace: string
  readonly podName: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly name: string
  readonly image: string
  /** Whether the container must exit before the others start. */
  readonly isInit: boolean
  /** 0 for the first run. */
  readonly restartCount: number
}

/** One result after the other, from the container's start; the last one stays. */
export type ProbeSchedule = readonly { readonly passes: boolean; readonly forMs?: number | undefined }[]

export interface SimulatedExec {
  readonly stdout?: string | undefined
  readonly stderr?: string | undefined
  /** Default 0. */
  readonly exitCode?: number | undefined
}

/** Absent fields have the default behaviour. */
export interface SimulatedBehaviour {
  readonly startDelayMs?: number | undefined
  /** Why the container cannot be started. */
  readonly startError?: string | undefined
  /** From its start. Absent: it runs until it is stopped. */
  readonly exitAfterMs?: number | undefined
  readonly exitCode?: number | undefined
  readonly exitReason?: string | undefined
  /** Only the first so many runs end like this; those after them run on. Default: all. */
  readonly exitTimes?: number | undefined
  /** From TERM to its end; beyond the grace period it is killed. */
  readonly stopDelayMs?: number | undefined
  readonly startup?: ProbeSchedule | undefined
  readonly liveness?: ProbeSchedule | undefined
  readonly readiness?: ProbeSchedule | undefined
  /** Lines of its log: at its start, or some time after. */
  readonly logs?: Iterable<string | { readonly afterMs: number; readonly text: string }> | undefined
  /** Undefined: no answer is known, and the command fails. */
  readonly exec?: ((command: readonly string[]) => SimulatedExec | undefined) | undefined
  /** What a port-forward is connected to; undefined: nothing listens. */
  readonly connect?: ((port: number) => Duplex | undefined) | undefined
  readonly cpuMilli?: number | undefined
  /** More than its limit, and it is killed for it after a second. */
  readonly memoryBytes?: number | undefined
}

export interface SimulatedPull {
  readonly delayMs?: number | undefined
  readonly error?: string | undefined
  /** Only the first so many pulls of the pod fail. Default: all. */
  readonly failures?: number | undefined
  /** The uid that the image runs as. Default 65532; 0 is root. */
  readonly user?: number | undefined
}

export type SimulatedProbe = 'startup' | 'liveness' | 'readiness'

/** When and how the container exits; undefined: it keeps running. */
export function endingOf(does: SimulatedBehaviour, config: ContainerFacts): { afterMs: number; exitCode: number; reason: string } | undefined {
  const { memoryLimitInBytes = 0 } = config.linux.resources
  if (does.memoryBytes !== undefined && memoryLimitInBytes > 0 && does.memoryBytes > memoryLimitInBytes) {
    return { afterMs: does.exitAfterMs ?? 1000, exitCode: 137, reason: 'OOMKilled' }
  }
  if (does.exitAfterMs === undefined || config.metadata.attempt >= (does.exitTimes ?? Number.POSITIVE_INFINITY)) return undefined
  const { exitCode = does.exitReason === 'OOMKilled' ? 137 : 0, exitReason = exitCode === 0 ? 'Completed' : 'Error' } = does
  return { afterMs: does.exitAfterMs, exitCode, reason: exitReason }
}

/** A tenth of the CPU request and of the memory limit, unless the behaviour sets the usage. */
export function usageOf({ linux }: ContainerFacts, does: SimulatedBehaviour): { cpuNanoCores: number; memoryBytes: number } {
  const { cpuShares = 2, memoryLimitInBytes = 100 * 2 ** 20 } = linux.resources
  const milli = does.cpuMilli ?? (cpuShares * 1000) / 1024 / 10
  return { cpuNanoCores: Math.round(milli * 1e6), memoryBytes: Math.round(does.memoryBytes ?? memoryLimitInBytes / 10) }
}

/** Whether a probe passes so long after the container's start. */
export function passesAt(schedule: ProbeSchedule | undefined, sinceStartMs: number): boolean {
  let left = sinceStartMs
  for (const [index, { passes, forMs = Number.POSITIVE_INFINITY }] of (schedule ?? []).entries()) {
    if (left < forMs || index === (schedule ?? []).length - 1) return passes
    left -= forMs
  }
  return true
}
