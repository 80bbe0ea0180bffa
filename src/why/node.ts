/** Why a node is not ready, or takes no pods (L2). */
import type { Node } from '#api/gen/types/core.v1'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { type Cause, conditionText, type Explanation, kubectl } from './answer.ts'

const problems = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'NetworkUnavailable'] as const

export async function explainNode(node: Frozen<Node>): Promise<Explanation> {
  const ready = findCondition(node.status?.conditions, 'Ready')
  const state = ready?.status === 'True' ? 'it is Ready' : 'it is not Ready'
  return { state, causes: [...readyCauses(node), ...problemCauses(node), ...cordonCauses(node)] }
}

function readyCauses({ status, metadata: { name = '' } }: Frozen<Node>): readonly Cause[] {
  const ready = findCondition(status?.conditions, 'Ready')
  const next = kubectl(undefined, 'describe', 'node', name)
  if (ready?.status === 'True') return []
  if (!ready || ready.reason === 'NodeStatusNeverUpdated')
    return [
      {
        text: 'no kubelet has reported its status yet: check that one runs with this node name',
        evidence: ready ? conditionText({ ...ready, message: '' }) : 'no condition Ready',
        next,
      },
    ]
  if (ready.status === 'Unknown')
    return [
      {
        text: `its kubelet has reported nothing since ${ready.lastHeartbeatTime ?? 'its start'}: the kubelet, the machine or the network between them is down`,
        evidence: conditionText({ ...ready, message: '' }),
        next: 'skiff status',
      },
    ]
  return [{ text: `its kubelet reports: ${ready.message ?? ready.reason}`, evidence: conditionText({ ...ready, message: '' }), next }]
}

function problemCauses({ status, metadata: { name = '' } }: Frozen<Node>): readonly Cause[] {
  return problems.flatMap((type) => {
    const condition = findCondition(status?.conditions, type)
    if (condition?.status !== 'True') return []
    const effect = type === 'NetworkUnavailable' ? 'its network is not configured' : 'it takes fewer pods, and may evict some'
    return [{ text: `it has ${type}: ${effect}`, evidence: conditionText(condition), next: kubectl(undefined, 'describe', 'node', name) }]
  })
}

function cordonCauses({ spec, metadata: { name = '' } }: Frozen<Node>): readonly Cause[] {
  return spec?.unschedulable
    ? [{ text: 'it takes no new pods: it is cordoned', evidence: 'spec.unschedulable true', next: kubectl(undefined, 'uncordon', name) }]
    : []
}
