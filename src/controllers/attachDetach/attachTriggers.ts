/**
 * Which changes make a node worth another look (L3): pods that use claims, the claims, volumes and drivers behind them, attachments, and the node.
 * Upstream: pkg/controller/volume/attachdetach/attach_detach_controller.go, its event handlers (v1.36).
 */
import type { Node, PersistentVolume, Pod } from '#api/gen/types/core.v1'
import type { VolumeAttachment } from '#api/gen/types/storage.v1'
import { podClaimNames } from '#api/helpers/objectReferences'
import { semanticEqual } from '#api/machinery/equality'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { csiDrivers, nodes, persistentVolumeClaims, persistentVolumes, pods, volumeAttachments } from '#client/builtIn'
import type { ControllerContext } from '../framework/controller.ts'
import type { Reconciler } from '../framework/reconciler.ts'
import { podClaimIndex } from '../shared/indexes.ts'
import { inTreeVolumes } from './attachable.ts'

/** The kubelet of a node without it attaches volumes itself. */
export const managedAnnotation = 'volumes.kubernetes.io/controller-managed-attach-detach'

export interface Triggers {
  readonly podsOfVolume: (volume: Frozen<PersistentVolume>) => readonly Frozen<Pod>[]
  readonly volumeOf: (attachment: Frozen<VolumeAttachment>) => Frozen<PersistentVolume> | undefined
  readonly attachmentChanged: (old: Frozen<VolumeAttachment>, now: Frozen<VolumeAttachment>) => void
  readonly lookAtAll: () => void
}

export function watchForNodes(
  { informers }: ControllerContext,
  reconciler: Reconciler,
  { podsOfVolume, volumeOf, attachmentChanged, lookAtAll }: Triggers,
): void {
  const podInformer = informers.of(pods)
  const enqueuePod = (pod: Frozen<Pod>) => {
    if (pod.spec.nodeName && podClaimNames(pod).length > 0) reconciler.queue.add(pod.spec.nodeName)
  }
  const enqueueAll = (some: readonly Frozen<Pod>[]) => some.forEach(enqueuePod)
  reconciler.watch(podInformer, { onAdd: enqueuePod, onUpdate: (_, pod) => enqueuePod(pod), onDelete: enqueuePod })
  const enqueueNode = (node: Frozen<Node>) => reconciler.queue.add(keyOf(node))
  reconciler.watch(informers.of(nodes), {
    onAdd: enqueueNode,
    onUpdate: (old, node) => {
      if (!semanticEqual(aspects(old), aspects(node))) enqueueNode(node)
      const names = inTreeVolumes(node)
      // Other nodes may have been waiting for it.
      if (inTreeVolumes(old).some((name) => !names.includes(name))) lookAtAll()
    },
    onDelete: (node) => {
      enqueueNode(node)
      if (inTreeVolumes(node).length > 0) lookAtAll()
    },
  })
  const enqueueUsers = (claimKey: string) => enqueueAll(podInformer.store.byIndex(podClaimIndex, claimKey))
  reconciler.watch(informers.of(persistentVolumeClaims), { onAdd: (claim) => enqueueUsers(keyOf(claim)), onUpdate: (_, claim) => enqueueUsers(keyOf(claim)) })
  reconciler.watch(informers.of(persistentVolumes), {
    onAdd: (volume) => enqueueAll(podsOfVolume(volume)),
    onUpdate: (_, volume) => enqueueAll(podsOfVolume(volume)),
  })
  reconciler.watch(informers.of(csiDrivers), { onAdd: lookAtAll, onUpdate: lookAtAll })
  const enqueueAttachment = ({ spec }: Frozen<VolumeAttachment>) => reconciler.queue.add(spec.nodeName)
  reconciler.watch(informers.of(volumeAttachments), {
    onAdd: enqueueAttachment,
    onUpdate: (old, one) => {
      attachmentChanged(old, one)
      enqueueAttachment(one)
    },
    onDelete: (one) => {
      enqueueAttachment(one)
      // Other nodes may have been waiting for it.
      const volume = volumeOf(one)
      if (volume) enqueueAll(podsOfVolume(volume))
    },
  })
}

/** What of a node decides about its volumes. */
function aspects({ metadata, spec, status }: Frozen<Node>) {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status
  return [metadata.annotations?.[managedAnnotation], spec?.taints, ready, status?.volumesInUse, status?.volumesAttached]
}
