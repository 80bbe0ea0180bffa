/** Indexes that several controllers share (L3); the functions are the same values, so that informers can be shared. */
import type { ReplicaSet } from '#api/gen/types/apps.v1'
import type { Job } from '#api/gen/types/batch.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { podClaimNames } from '#api/helpers/objectReferences'
import { controllerOf } from '#api/helpers/owners'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { Indexers } from '#client/cache/indexer'

/** Value: the controller's uid, or `orphan:<namespace>`. */
export const controllerUidIndex = 'controllerUid'

export const controllerUidOrOrphan = (object: Frozen<KubeObject>): string => controllerOf(object)?.uid ?? `orphan:${object.metadata.namespace}`
const byController = (object: Frozen<KubeObject>): readonly string[] => [controllerUidOrOrphan(object)]

/** Value: the namespace, of pods that wait for a node. */
export const unscheduledPodsIndex = 'unscheduled'
const nothing: readonly string[] = []
const byUnscheduled = ({ metadata, spec }: Frozen<Pod>): readonly string[] =>
  spec.nodeName || metadata.deletionTimestamp ? nothing : [metadata.namespace ?? '']

export const podControllerIndexers: Indexers<Pod> = { [controllerUidIndex]: byController, [unscheduledPodsIndex]: byUnscheduled }
export const replicaSetControllerIndexers: Indexers<ReplicaSet> = { [controllerUidIndex]: byController }

export const jobControllerIndexers: Indexers<Job> = { [controllerUidIndex]: byController }

/** Value: spec.nodeName, '' for unassigned pods. */
export const nodeNameIndex = 'nodeName'
export const podNodeIndexers: Indexers<Pod> = { [nodeNameIndex]: (pod) => [pod.spec.nodeName ?? ''] }

/** Value: namespace/name of each claim that the pod uses, those included that are made for it. */
export const podClaimIndex = 'persistentVolumeClaim'
export const podClaimIndexers: Indexers<Pod> = { [podClaimIndex]: (pod) => podClaimNames(pod).map((name) => `${pod.metadata.namespace}/${name}`) }
