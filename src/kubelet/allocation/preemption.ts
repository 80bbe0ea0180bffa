/**
 * Selects the pods to end so that a critical pod fits (L3, pure): as few and as small as possible, best effort before burstable before guaranteed.
 * Upstream: kubelet/preemption/preemption.go, kubelet/types/pod_update.go Preemptable (v1.36).
 */
import { podRequests } from '#api/helpers/podResources'
import { podQosClass } from '../core/cgroupResources.ts'
import type { FrozenPod } from '../core/containers.ts'
import { isCriticalPod } from '../core/criticalPods.ts'
import type { Misfit } from './admission.ts'

type Shortfall = NonNullable<Misfit['shortfall']>

interface Candidate {
  readonly pod: FrozenPod
  readonly requests: Readonly<Record<string, number>>
}

export const preemptionMessage = 'Preempted in order to admit critical pod'

function isPreemptable(preemptor: FrozenPod, pod: FrozenPod): boolean {
  if (isCriticalPod(preemptor) && !isCriticalPod(pod)) return true
  const [own, other] = [preemptor.spec.priority, pod.spec.priority]
  return own !== undefined && other !== undefined && own > other
}

const freed = ({ requests }: Candidate, resource: string) => (resource === 'pods' ? 1 : (requests[resource] ?? 0))

/** The resources that are still missing after these pods are ended. */
function without(missing: readonly Shortfall[], gone: readonly Candidate[]): Shortfall[] {
  return missing
    .map(({ resource, amount }) => ({ resource, amount: gone.reduce((left, candidate) => left - freed(candidate, resource), amount) }))
    .filter(({ amount }) => amount > 0)
}

/** How much would still be missing after the pod's end: each resource has the same weight. */
function distance(missing: readonly Shortfall[], candidate: Candidate): number {
  return missing.reduce((sum, { resource, amount }) => {
    const left = amount - freed(candidate, resource)
    return left > 0 ? sum + (left / amount) ** 2 : sum
  }, 0)
}

function isSmaller(a: Candidate, b: Candidate): boolean {
  for (const resource of ['memory', 'cpu']) {
    const difference = freed(a, resource) - freed(b, resource)
    if (difference !== 0) return difference < 0
  }
  return true
}

/** Repeatedly takes the pod whose requests are closest to the missing resources, until nothing is missing. */
function nearest(candidates: readonly Candidate[], missing: readonly Shortfall[]): Candidate[] {
  const rest = [...candidates]
  const taken: Candidate[] = []
  let left = [...missing]
  while (left.length > 0) {
    const [best] = rest
    if (!best) return taken
    const chosen = rest.reduce((a, b) => {
      const [ofA, ofB] = [distance(left, a), distance(left, b)]
      return ofB < ofA || (ofB === ofA && isSmaller(b, a)) ? b : a
    })
    rest.splice(rest.indexOf(chosen), 1)
    taken.push(chosen)
    left = without(left, [chosen])
  }
  return taken
}

/** The pods to end, or undefined when ending all preemptable pods would not be enough. */
export function podsToPreempt(preemptor: FrozenPod, pods: readonly FrozenPod[], missing: readonly Shortfall[]): FrozenPod[] | undefined {
  const candidates = pods.filter((pod) => isPreemptable(preemptor, pod)).map((pod) => ({ pod, requests: podRequests(pod) }))
  if (without(missing, candidates).length > 0) return undefined
  const [bestEffort, burstable, guaranteed] = (['BestEffort', 'Burstable', 'Guaranteed'] as const).map((qos) =>
    candidates.filter(({ pod }) => podQosClass(pod) === qos),
  ) as [Candidate[], Candidate[], Candidate[]]
  const third = nearest(guaranteed, without(missing, [...bestEffort, ...burstable]))
  const second = nearest(burstable, without(missing, [...bestEffort, ...third]))
  const first = nearest(bestEffort, without(missing, [...second, ...third]))
  return [...first, ...second, ...third].map(({ pod }) => pod)
}
