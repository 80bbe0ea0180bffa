/** Why a DaemonSet is not ready on its nodes (L2). */
import type { DaemonSet } from '#api/gen/types/apps.v1'
import type { Node, Pod } from '#api/gen/types/core.v1'
import { daemonTolerations } from '#api/helpers/daemonTolerations'
import { podMatchesNodeSelectorAndAffinity } from '#api/helpers/nodes'
import { tolerationsTolerateTaint } from '#api/helpers/taints'
import type { Frozen } from '#api/machinery/meta'
import { type Cause, counted, type Explanation, kubectl } from './answer.ts'
import { controllerSilence } from './controllerSilence.ts'
import type { View } from './view.ts'
import { causesOfPods, failedCreation } from './workloadPods.ts'

export async function explainDaemonSet(set: Frozen<DaemonSet>, view: View): Promise<Explanation> {
  const { desiredNumberScheduled: desired = 0, numberReady = 0, updatedNumberScheduled = 0, observedGeneration } = set.status ?? {}
  const state = `${numberReady} of ${counted(desired, 'node')} have a ready pod`
  const silence = controllerSilence(set, observedGeneration)
  if (silence) return { state, causes: [silence] }
  if (desired === 0) return { state, causes: await noNodeCauses(set, view) }
  if (numberReady < desired) return { state, causes: await podsCauses(set, view), isSettled: false }
  const isUpdated = updatedNumberScheduled >= desired
  return { state, causes: isUpdated ? [] : updateCauses(set), isSettled: isUpdated }
}

async function noNodeCauses(set: Frozen<DaemonSet>, view: View): Promise<readonly Cause[]> {
  const nodes = await view.list<Node>('nodes', undefined)
  if (!nodes) return []
  const { nodeSelector, affinity } = set.spec.template.spec ?? {}
  const pod = { ...set.spec.template, metadata: {} } as Frozen<Pod>
  const matching = nodes.filter((node) => podMatchesNodeSelectorAndAffinity(pod, node))
  const asks = nodeSelector
    ? `nodeSelector ${Object.entries(nodeSelector)
        .map(([key, value]) => `${key}=${value}`)
        .join(', ')}`
    : 'affinity'
  if (matching.length === 0 && (nodeSelector || affinity))
    return [
      {
        text: `no node has the labels that its pods ask for: ${asks}`,
        evidence: `spec.template.spec.${asks}`,
        next: kubectl(undefined, 'get', 'nodes', '--show-labels'),
      },
    ]
  const { tolerations, hostNetwork = false } = set.spec.template.spec ?? {}
  const tolerated = daemonTolerations(tolerations, hostNetwork)
  const refusing = ({ spec }: Frozen<Node>) =>
    (spec?.taints ?? []).filter((taint) => taint.effect !== 'PreferNoSchedule' && !tolerationsTolerateTaint(tolerated, taint))
  const taints = [...new Set(matching.flatMap((node) => refusing(node).map(({ key, effect }) => `${key}:${effect}`)))]
  return [
    {
      text: taints.length > 0 ? `its pods do not tolerate the taints of the nodes: ${taints.slice(0, 5).join(', ')}` : 'there is no node for its pods',
      evidence: 'status.desiredNumberScheduled 0',
      next: kubectl(undefined, 'get', 'nodes'),
    },
  ]
}

async function podsCauses(set: Frozen<DaemonSet>, view: View): Promise<readonly Cause[]> {
  const pods = (await view.podsOf(set, set.spec.selector)) ?? []
  const failure = pods.length < (set.status?.desiredNumberScheduled ?? 0) ? await failedCreation(set, view) : undefined
  return [...(failure ? [failure] : []), ...(await causesOfPods(pods, view))]
}

function updateCauses({ spec, status, metadata: { namespace, name = '' } }: Frozen<DaemonSet>): readonly Cause[] {
  if (spec.updateStrategy?.type !== 'OnDelete') return []
  const old = (status?.desiredNumberScheduled ?? 0) - (status?.updatedNumberScheduled ?? 0)
  return [
    {
      text: `${counted(old, 'pod')} of an older template: each is replaced only when it is deleted`,
      evidence: 'spec.updateStrategy.type OnDelete',
      next: kubectl(namespace, 'rollout', 'status', `daemonset/${name}`),
    },
  ]
}
