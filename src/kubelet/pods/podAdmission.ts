/**
 * Asks whether a pod that is new to the node may run (L3): resources and devices in turn, the Node once more when it may just have changed,
 * and for a critical pod room is made first. Upstream: kubelet.go HandlePodAdditions, kubelet/lifecycle/predicate.go, kubelet/preemption (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Counter } from '#base/metrics'
import { nodes } from '#client/builtIn'
import { admitPod, misfits, type NodeRoom } from '../allocation/admission.ts'
import type { Allocations } from '../allocation/allocations.ts'
import { podsToPreempt, preemptionMessage } from '../allocation/preemption.ts'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { isCriticalPod } from '../core/criticalPods.ts'
import { podReference } from '../core/podReference.ts'
import type { Refusal } from '../core/refusal.ts'
import type { PodStatusInput } from './podStatus.ts'

export interface PodAdmissionDeps {
  readonly context: KubeletContext
  readonly allocations: Allocations
  readonly preemptions: Counter
  pressure(): NodeRoom['pressure']
  /** The refusal while the node shuts down. */
  shutdownRefusal(): Refusal | undefined
  /** The node as this kubelet last saw it in the API. */
  node(): Frozen<Node> | undefined
  /** Ends a pod; resolves when it has gone. */
  end(podUid: string, ending: NonNullable<PodStatusInput['ending']>): Promise<void>
}

/** Depends on labels and taints, which may have changed since the node was last seen. */
const ofNode = new Set(['NodeAffinity', 'TaintToleration'])

/** Undefined: the pod may run, and what it asks for is set aside. */
export function createPodAdmission(deps: PodAdmissionDeps): (pod: FrozenPod) => Promise<Refusal | undefined> {
  const { context, allocations } = deps
  const ask = (pod: FrozenPod, node: Frozen<Node> | undefined): Promise<Refusal | undefined> => {
    const room = nodeRoom(deps, node)
    // Set aside at once: the next pod must not count on it.
    return context.resources.admit(pod, () => admitPod(pod, allocations.allocatedPods(), room) ?? allocations.setAside(pod))
  }
  return async (pod) => {
    const leaving = deps.shutdownRefusal()
    if (leaving) return leaving
    let node = deps.node()
    let refusal = await ask(pod, node)
    if (refusal && node && ofNode.has(refusal.reason)) {
      node = await context.client
        .of(nodes)
        .get({ name: context.config.nodeName })
        .catch(() => node)
      refusal = await ask(pod, node)
    }
    if (refusal && isCriticalPod(pod)) {
      const unmade = await makeRoom(deps, pod, nodeRoom(deps, node))
      refusal = unmade ?? (await ask(pod, node))
    }
    await (refusal ? allocations.forget(pod.metadata.uid ?? '') : allocations.admitted())
    return refusal
  }
}

function nodeRoom({ context, pressure }: PodAdmissionDeps, node: Frozen<Node> | undefined): NodeRoom {
  const { allowedUnsafeSysctls } = context.config
  return { allocatable: context.allocatable, pressure: pressure(), node, allowedUnsafeSysctls, appArmor: context.machineInfo.appArmor }
}

/** Ends other pods so that the critical one fits. Answers why that cannot help; undefined: it is worth asking again. */
async function makeRoom({ context, allocations, preemptions, end }: PodAdmissionDeps, pod: FrozenPod, room: NodeRoom): Promise<Refusal | undefined> {
  const others = allocations.allocatedPods().filter((other) => other.metadata.uid !== pod.metadata.uid)
  const found = misfits(pod, others, room)
  const missing = found.flatMap(({ shortfall }) => shortfall ?? [])
  const other = found.find(({ shortfall }) => !shortfall)
  if (other) return { reason: other.reason, message: other.message }
  if (missing.length === 0) return undefined
  const victims = podsToPreempt(pod, others, missing)
  if (!victims) {
    const wanted = missing.map(({ resource, amount }) => `(res: ${resource}, q: ${amount}), `).join('')
    const why = `preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [${wanted}]`
    return { reason: 'UnexpectedAdmissionError', message: `Unexpected error while attempting to recover from admission failure: ${why}` }
  }
  await Promise.all(
    victims.map((victim) => {
      context.recorder.event(podReference(victim), 'Warning', 'Preempting', preemptionMessage)
      preemptions.inc({ preemption_signal: missing[0]?.resource ?? '' })
      return end(victim.metadata.uid ?? '', { phase: 'Failed', reason: 'Preempting', message: preemptionMessage, disrupted: true })
    }),
  )
  return undefined
}
