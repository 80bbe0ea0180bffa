/**
 * Keeps pods off nodes whose kubelet does not declare a feature that the pod needs (L3).
 * Upstream: plugins/nodedeclaredfeatures, component-helpers/nodedeclaredfeatures/features (v1.36).
 */
import type { Container, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { bareMap } from '#base/bareMap'
import { actions, on } from '../framework/clusterEvent.ts'
import { type StateData, stateKey } from '../framework/cycleState.ts'
import { definePlugin } from '../framework/plugin.ts'
import { reasons, unresolvable } from '../framework/status.ts'

/** Those that matter when a pod is placed; others matter only when it is changed. */
const features: Readonly<Record<string, (spec: Frozen<Pod>['spec']) => boolean>> = bareMap({
  RestartAllContainersOnContainerExits: ({ containers, initContainers = [] }) => containers.some(restartsAll) || initContainers.some(restartsAll),
  UserNamespacesHostNetworkSupport: ({ hostNetwork, hostUsers }) => hostNetwork === true && hostUsers === false,
})

function restartsAll({ restartPolicyRules }: Frozen<Container>): boolean {
  return restartPolicyRules?.some(({ action }) => action === 'RestartAllContainers') === true
}

function neededBy({ spec }: Frozen<Pod>): string[] {
  return Object.keys(features).filter((name) => features[name]?.(spec))
}

interface Needed extends StateData {
  readonly names: readonly string[]
}
const key = stateKey<Needed>('PreFilterNodeDeclaredFeatures')
const refused = unresolvable(reasons.declaredFeatures)

export const nodeDeclaredFeatures = definePlugin('NodeDeclaredFeatures', () => ({
  requeueOn: [
    on('Node', actions.Add | actions.UpdateNodeDeclaredFeature),
    on('TargetPod', actions.Update, (_pod, { old, object }) => !old || !object || neededBy(old).join() !== neededBy(object).join()),
  ],
  preFilter: (state, { pod }) => {
    const names = neededBy(pod)
    if (names.length === 0) return 'skip'
    state.write(key, { names })
    return undefined
  },
  sign: ({ pod }) => neededBy(pod).join(),
  filter: (state, _pod, { node }) => {
    const declared = node.status?.declaredFeatures
    return state.read(key)?.names.every((name) => declared?.includes(name)) === false ? refused : undefined
  },
}))
