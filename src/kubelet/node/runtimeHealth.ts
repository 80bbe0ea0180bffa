/**
 * Health of the container runtime (L3): the conditions that it reports; a runtime that does not answer for half a minute is down.
 * Upstream: kubelet/runtime.go, kubelet.go updateRuntimeUp, kubelet/pleg/generic.go Healthy (v1.36).
 */
import type { RuntimeCondition, RuntimeStatus, RuntimeVersion } from '#grpc/criTypes'
import type { KubeletContext } from '../core/context.ts'
import { formatElapsed } from '../core/formatElapsed.ts'

export interface RuntimeHealth {
  /** Undefined until the runtime has answered once. */
  version(): RuntimeVersion | undefined
  /** The last reported features of the runtime. */
  status(): RuntimeStatus | undefined
  /** Asks the runtime. Returns why the node is not ready, in upstream's words; none: it is. */
  problems(): Promise<string[]>
}

/** So long a silent runtime counts as it was. */
const patienceMs = 30_000
/** So long the kubelet may have no full view of what runs. */
const relistThresholdMs = 180_000

/** @param relistedAtMs time of the last relist of all pods, in monotonic milliseconds; undefined: relists are off */
export function createRuntimeHealth(context: Pick<KubeletContext, 'runtime' | 'clock'>, relistedAtMs: () => number | undefined): RuntimeHealth {
  const { runtime, clock } = context
  let version: RuntimeVersion | undefined
  let status: RuntimeStatus | undefined
  let answeredAtMs = 0

  /** Why the runtime itself keeps the node from being ready. */
  const ask = async (): Promise<string[]> => {
    try {
      version ??= await runtime.version()
      status = await runtime.status()
      answeredAtMs = clock.monotonicMs()
    } catch {
      if (!status) return ['container runtime status check may not have completed yet']
      if (clock.monotonicMs() - answeredAtMs > patienceMs) {
        // A restarted runtime may have another version.
        version = undefined
        return ['container runtime is down']
      }
    }
    return []
  }

  return {
    version: () => version,
    status: () => status,
    problems: async () => [...(await ask()), ...plegProblems(relistedAtMs(), clock.monotonicMs()), ...conditionProblems(status?.conditions ?? [])],
  }
}

/** The failed conditions of a runtime that answers. */
export function conditionProblems(conditions: readonly RuntimeCondition[]): string[] {
  return (['RuntimeReady', 'NetworkReady'] as const).flatMap((type) => {
    const condition = conditions.find((candidate) => candidate.type === type)
    if (!condition || condition.status) return []
    const what = type === 'NetworkReady' ? 'container runtime network not ready' : 'container runtime not ready'
    return [`${what}: ${type}=false reason:${condition.reason} message:${condition.message}`]
  })
}

export function plegProblems(relistedAtMs: number | undefined, nowMs: number): string[] {
  if (relistedAtMs === undefined) return []
  const silentMs = nowMs - relistedAtMs
  if (silentMs <= relistThresholdMs) return []
  return [`PLEG is not healthy: pleg was last seen active ${formatElapsed(silentMs)} ago; threshold is ${formatElapsed(relistThresholdMs)}`]
}
