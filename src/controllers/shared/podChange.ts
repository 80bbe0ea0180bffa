/**
 * Whether a change of a pod can concern the controller that counts it (L3). Pure. Binding or a new address cannot: a workload of a thousand
 * pods need not count them all again because one found its node. Upstream has no such filter (pkg/controller/replicaset, updatePod, v1.36)
 * and finds nothing to do in those syncs.
 */
import type { Pod, PodTemplateSpec } from '#api/gen/types/core.v1'
import type { LabelSelector } from '#api/gen/types/meta.v1'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'

/** The part of a workload's spec that speaks of labels. */
export interface PodsOf {
  readonly selector?: Frozen<LabelSelector> | undefined
  readonly template?: Frozen<PodTemplateSpec> | undefined
}

/** What a ReplicaSet, ReplicationController or Job can tell apart: labels it asks for, other metadata, phase, conditions, and how containers fared. */
export function changesCounts(old: Frozen<Pod>, pod: Frozen<Pod>, workload: PodsOf): boolean {
  const [before, after] = [old.status, pod.status]
  return (
    before?.phase !== after?.phase ||
    !semanticEqual(ownConditions(old), ownConditions(pod)) ||
    !semanticEqual(before?.containerStatuses, after?.containerStatuses) ||
    !semanticEqual(before?.initContainerStatuses, after?.initContainerStatuses) ||
    !semanticEqual(ownMetadata(old), ownMetadata(pod)) ||
    labelsOf(workload).some((label) => ownValue(old.metadata.labels, label) !== ownValue(pod.metadata.labels, label))
  )
}

/** Except the conditions of the scheduler. */
const ownConditions = ({ status }: Frozen<Pod>) => status?.conditions?.filter(({ type }) => type !== 'PodScheduled')

/** Without what the server keeps for itself. Labels are compared one by one: binding adds those of the node's topology. */
function ownMetadata({ metadata }: Frozen<Pod>) {
  const { resourceVersion, managedFields, generation, labels, ...rest } = metadata
  return rest
}

function labelsOf({ selector, template }: PodsOf): readonly string[] {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {}
  return [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key), ...Object.keys(template?.metadata?.labels ?? {})]
}
