/** Why a pod does not run, or is not ready (L2): scheduling with its claims, the node, volumes, images, containers and probes. */
import type { Node, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import { isNodeReady } from '#api/helpers/nodes'
import { podClaimNames } from '#api/helpers/objectReferences'
import { isPodReady, podCondition } from '#api/helpers/pods'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { type Cause, conditionText, type Explanation, kubectl, skiffWhy } from './answer.ts'
import { claimCauses } from './persistentVolumeClaim.ts'
import { containerCauses, endedCauses } from './podContainers.ts'
import type { View } from './view.ts'

export async function explainPod(pod: Frozen<Pod>, view: View): Promise<Explanation> {
  const causes = await podCauses(pod, view)
  return {
    state: stateOf(pod),
    causes: causes.map((cause) => ({ next: kubectl(undefined, 'describe', 'nodes'), ...cause })),
    isSettled: causes.length === 0 && (isPodReady(pod) || pod.status?.phase === 'Succeeded'),
  }
}

function stateOf(pod: Frozen<Pod>): string {
  const { status, spec } = pod
  const where = spec.nodeName ? ` on ${spec.nodeName}` : ''
  const statuses = status?.containerStatuses ?? []
  const restarts = statuses.reduce((sum, { restartCount }) => sum + restartCount, 0)
  if (status?.phase !== 'Running') return `its phase is ${status?.phase ?? 'Pending'}${where}`
  return `it runs${where}, ${isPodReady(pod) ? 'ready' : 'not ready'}, restarts: ${restarts}`
}

/** A cause without `next` means that no node fits; the caller adds the command. */
export async function podCauses(pod: Frozen<Pod>, view: View): Promise<readonly Cause[]> {
  const { phase } = pod.status ?? {}
  if (phase === 'Succeeded') return []
  if (phase === 'Failed') return [failedCause(pod)]
  if (!pod.spec.nodeName) return schedulingCauses(pod, view)
  const ofNode = await nodeCause(pod, view)
  if (ofNode) return [ofNode]
  return isPodReady(pod) ? [] : containerCauses(pod, view)
}

function failedCause(pod: Frozen<Pod>): Cause {
  const { reason, message } = pod.status ?? {}
  const { namespace, name = '' } = pod.metadata
  const disruption = podCondition(pod, 'DisruptionTarget')
  if (reason === undefined && !disruption) {
    const [ended] = endedCauses(pod)
    if (ended) return ended
  }
  const why = message ?? disruption?.message ?? ''
  return {
    text: `it has failed and does not start again${reason ? `: ${reason}` : ''}${why && `: ${why}`}`,
    evidence: `status.phase Failed${disruption ? `, ${conditionText(disruption)}` : ''}`,
    next: pod.spec.nodeName ? kubectl(undefined, 'describe', 'node', pod.spec.nodeName) : kubectl(namespace, 'describe', 'pod', name),
  }
}

async function schedulingCauses(pod: Frozen<Pod>, view: View): Promise<readonly Cause[]> {
  const { namespace, name = '' } = pod.metadata
  const condition = podCondition(pod, 'PodScheduled')
  if (condition?.reason === 'SchedulingGated') {
    const gates = (pod.spec.schedulingGates ?? []).map((gate) => gate.name).join(', ')
    return [
      {
        text: `the scheduler leaves it out until its scheduling gates are removed: ${gates}`,
        evidence: `spec.schedulingGates, ${conditionText({ ...condition, message: '' })}`,
        next: kubectl(namespace, 'get', 'pod', name, '-o', 'yaml'),
      },
    ]
  }
  const ofClaims = await claimsOf(pod, view)
  if (ofClaims.length > 0) return ofClaims
  if (condition) {
    return [{ text: `no node fits: ${condition.message ?? ''}`, evidence: conditionText({ ...condition, message: '' }) }]
  }
  const { schedulerName = 'default-scheduler' } = pod.spec
  return [
    {
      text: `the scheduler ${schedulerName} has not looked at it: check that it runs, and that this is its name`,
      evidence: `spec.schedulerName ${schedulerName}, and no condition PodScheduled`,
      next: kubectl(undefined, 'get', 'leases', '-A'),
    },
  ]
}

/** Claims that wait for something else than this pod. */
async function claimsOf(pod: Frozen<Pod>, view: View): Promise<readonly Cause[]> {
  const { namespace } = pod.metadata
  const causes: Cause[] = []
  for (const name of podClaimNames(pod)) {
    const { object: claim, isAbsent } = await view.get<PersistentVolumeClaim>('persistentvolumeclaims', namespace, name)
    if (isAbsent)
      causes.push({
        text: `it uses the claim ${name}, which does not exist`,
        evidence: 'spec.volumes',
        next: kubectl(namespace, 'get', 'persistentvolumeclaims'),
      })
    if (!claim || claim.status?.phase === 'Bound') continue
    const found = await claimCauses(claim, view)
    causes.push(
      ...found.filter(({ isConsumerAwaited }) => !isConsumerAwaited).map((cause) => ({ ...cause, text: `its claim ${name} has no volume: ${cause.text}` })),
    )
  }
  return causes
}

async function nodeCause(pod: Frozen<Pod>, view: View): Promise<Cause | undefined> {
  const { nodeName = '' } = pod.spec
  const { object: node, isAbsent } = await view.get<Node>('nodes', undefined, nodeName)
  if (isAbsent) return { text: `its node ${nodeName} does not exist`, evidence: `spec.nodeName ${nodeName}`, next: kubectl(undefined, 'get', 'nodes') }
  if (!node || isNodeReady(node)) return undefined
  const condition = findCondition(node.status?.conditions, 'Ready')
  return {
    text: `its node ${nodeName} is not ready, so no kubelet acts on the pod`,
    evidence: `node ${nodeName}: ${condition ? conditionText(condition) : 'no condition Ready'}`,
    next: skiffWhy('node', nodeName),
  }
}
