/**
 * Events of the cluster (L3): plugins get them to decide whether a pod that they refused may fit now.
 * Upstream: kube-scheduler/framework/types.go ActionType, ClusterEvent, QueueingHintFn (v1.36).
 */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import type { DeviceClass, ResourceClaim, ResourceSlice } from '#api/gen/types/resource.v1'
import type { CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment } from '#api/gen/types/storage.v1'
import type { Frozen } from '#api/machinery/meta'

/** Kinds of change, to be or-ed. The names are upstream's, and labels of metrics. */
export const actions = {
  Add: 1,
  Delete: 1 << 1,
  UpdateNodeAllocatable: 1 << 2,
  UpdateNodeLabel: 1 << 3,
  /** Taints, or that the node takes pods again. */
  UpdateNodeTaint: 1 << 4,
  UpdateNodeCondition: 1 << 5,
  UpdateNodeAnnotation: 1 << 6,
  UpdateNodeDeclaredFeature: 1 << 7,
  UpdatePodLabel: 1 << 8,
  /** Some request became smaller. */
  UpdatePodScaleDown: 1 << 9,
  UpdatePodToleration: 1 << 10,
  UpdatePodSchedulingGatesEliminated: 1 << 11,
  UpdatePodGeneratedResourceClaim: 1 << 12,
  /** Another change of a pod: only for plugins that register for any update. */
  UpdatePodOther: 1 << 13,
  /** Any update, of any kind of object. */
  Update: ((1 << 14) - 1) & ~0b11,
  All: (1 << 14) - 1,
} as const

/** Which object an event is about. */
export interface EventObjects {
  Node: Node
  /** A pod that has a node; its deletion also stands for one that loses an assumed node. */
  AssignedPod: Pod
  /** The waiting pod itself. */
  TargetPod: Pod
  PersistentVolume: PersistentVolume
  PersistentVolumeClaim: PersistentVolumeClaim
  StorageClass: StorageClass
  CSINode: CSINode
  CSIDriver: CSIDriver
  CSIStorageCapacity: CSIStorageCapacity
  VolumeAttachment: VolumeAttachment
  ResourceClaim: ResourceClaim
  ResourceSlice: ResourceSlice
  DeviceClass: DeviceClass
}

export type EventResource = keyof EventObjects

export interface ClusterEvent<R extends EventResource = EventResource> {
  readonly resource: R
  /** What changed: several bits when one update changed several things. */
  readonly action: number
  /** Absent when added. */
  readonly old: Frozen<EventObjects[R]> | undefined
  /** Absent when deleted. */
  readonly object: Frozen<EventObjects[R]> | undefined
}

/** Which events may help a pod that the plugin refused, and whether one really does; absent: each does. */
export interface Requeue {
  readonly resource: EventResource
  readonly actions: number
  readonly hint: ((pod: Frozen<Pod>, event: ClusterEvent) => boolean) | undefined
}

/** `on('Node', actions.Add | actions.UpdateNodeLabel, (pod, { object }) => …)`: the hint sees the right kind of object. */
export function on<R extends EventResource>(resource: R, mask: number, hint?: (pod: Frozen<Pod>, event: ClusterEvent<R>) => boolean): Requeue {
  return { resource, actions: mask, hint: hint as Requeue['hint'] }
}

const actionNames = Object.entries(actions)

/** `NodeUpdateNodeTaint`, `AssignedPodDelete`: the event label of scheduler_queue_incoming_pods_total. */
export function eventLabel({ resource, action }: ClusterEvent): string {
  // Upstream calls the waiting pod so in its metrics.
  const what = resource === 'TargetPod' ? 'UnschedulablePod' : resource
  for (const [name, bit] of actionNames) if (bit === action && name !== 'UpdatePodOther') return what + name
  return `${what}Update`
}
