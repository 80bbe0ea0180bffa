/**
 * Passes changes of the cluster to cache and queue (L3): nodes and pods always, other kinds where a plugin registers for them.
 * Upstream: pkg/scheduler/eventhandlers.go (v1.36).
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { isPodTerminal } from '#api/helpers/pods'
import { type Frozen, type KubeObject, keyOf } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import {
  csiDrivers,
  csiNodes,
  csiStorageCapacities,
  deviceClasses,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  resourceClaims,
  resourceSlices,
  storageClasses,
  volumeAttachments,
} from '#client/builtIn'
import type { HandlerRegistration, SharedInformer } from '#client/cache/sharedInformer'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Resource } from '#client/client'
import { nodeUpdateAction, podUpdateAction } from './clusterChanges.ts'
import { actions, type ClusterEvent, type EventResource, eventLabel } from './framework/clusterEvent.ts'
import { podInfo } from './framework/podInfo.ts'
import type { Profile } from './framework/profile.ts'
import type { Nominator } from './nominator.ts'
import type { SchedulerCache } from './schedulerCache.ts'
import type { SchedulingQueue } from './schedulingQueue.ts'
import type { WaitingPods } from './waitingPods.ts'

/** Kinds that only some plugins care about. */
const otherResources: Readonly<Record<Exclude<EventResource, 'Node' | 'AssignedPod' | 'TargetPod'>, Resource<KubeObject>>> = {
  PersistentVolume: persistentVolumes,
  PersistentVolumeClaim: persistentVolumeClaims,
  StorageClass: storageClasses,
  CSINode: csiNodes,
  CSIDriver: csiDrivers,
  CSIStorageCapacity: csiStorageCapacities,
  VolumeAttachment: volumeAttachments,
  ResourceClaim: resourceClaims,
  ResourceSlice: resourceSlices,
  DeviceClass: deviceClasses,
}

export interface ClusterWatchDeps {
  readonly informers: SharedInformerFactory
  readonly cache: SchedulerCache
  readonly queue: SchedulingQueue
  readonly nominator: Nominator
  readonly waiting: WaitingPods
  readonly profiles: ReadonlyMap<string, Profile>
  /** The pod is gone: nothing about it has to be remembered. */
  readonly onPodGone: (pod: Frozen<Pod>) => void
  readonly clock: Clock
  /** Gets the time that the handling of an event took. */
  readonly handled?: ((event: string, seconds: number) => void) | undefined
}

export interface ClusterWatch {
  synced(signal: AbortSignal): Promise<void>
  remove(): void
}

export function watchCluster(deps: ClusterWatchDeps): ClusterWatch {
  const { informers, cache } = deps
  const intake = new Intake(deps)
  const podInformer = informers.of(pods)
  const nodeInformer = informers.of(nodes)
  const podHandler = new PodHandler(deps, intake)
  const registrations: HandlerRegistration[] = [
    nodeInformer.addHandler({
      onAdd: (node) => {
        intake.begin()
        cache.setNode(node)
        intake.tell(nodeEvent(actions.Add, undefined, node))
      },
      onUpdate: (old, node) => {
        if (old === node) return
        intake.begin()
        cache.setNode(node)
        const changed = nodeUpdateAction(old, node)
        if (changed !== 0) intake.tell(nodeEvent(changed, old, node))
      },
      onDelete: (node) => {
        intake.begin()
        cache.removeNode(node.metadata.name ?? '')
        intake.tell(nodeEvent(actions.Delete, node, undefined))
      },
    }),
    podInformer.addHandler({
      onAdd: (pod) => podHandler.onPod(pod),
      onUpdate: (old, pod) => podHandler.onPod(pod, old),
      onDelete: (pod) => podHandler.onDelete(pod),
    }),
  ]
  const waitFor: SharedInformer<never>[] = [podInformer, nodeInformer] as unknown as SharedInformer<never>[]
  for (const resource of wantedResources(deps.profiles)) {
    const informer = informers.of(otherResources[resource])
    const tell = (action: number, old: Frozen<KubeObject> | undefined, object: Frozen<KubeObject> | undefined) => {
      intake.begin()
      intake.tell({ resource, action, old, object } as unknown as ClusterEvent)
    }
    registrations.push(
      informer.addHandler({
        onAdd: (object) => tell(actions.Add, undefined, object),
        onUpdate: (old, object) => old !== object && tell(actions.Update, old, object),
        onDelete: (object) => tell(actions.Delete, object, undefined),
      }),
    )
    waitFor.push(informer as unknown as SharedInformer<never>)
  }
  return {
    synced: async (signal) => {
      await Promise.all(waitFor.map((informer) => informer.synced(signal)))
    },
    remove: () => {
      for (const registration of registrations) registration.remove()
    },
  }
}

function wantedResources(profiles: ReadonlyMap<string, Profile>): Set<keyof typeof otherResources> {
  const wanted = new Set<keyof typeof otherResources>()
  for (const { plugins } of profiles.values())
    for (const { requeueOn = [] } of plugins.values())
      for (const { resource } of requeueOn) if (resource in otherResources) wanted.add(resource as keyof typeof otherResources)
  return wanted
}

function nodeEvent(action: number, old: Frozen<Node> | undefined, object: Frozen<Node> | undefined): ClusterEvent<'Node'> {
  return { resource: 'Node', action, old, object }
}

/** Passes events to the queue and records the duration of each, including the cache's update before it. */
class Intake {
  readonly #deps: ClusterWatchDeps
  #startedMs = 0

  constructor(deps: ClusterWatchDeps) {
    this.#deps = deps
  }

  begin(): void {
    if (this.#deps.handled) this.#startedMs = this.#deps.clock.monotonicMs()
  }

  tell(event: ClusterEvent): void {
    this.#deps.queue.onEvent(event)
    this.done(event)
  }

  done(event: ClusterEvent): void {
    const { handled, clock } = this.#deps
    if (handled) handled(eventLabel(event), (clock.monotonicMs() - this.#startedMs) / 1000)
  }
}

class PodHandler {
  readonly #deps: ClusterWatchDeps
  readonly #intake: Intake

  constructor(deps: ClusterWatchDeps, intake: Intake) {
    this.#deps = deps
    this.#intake = intake
  }

  onPod(pod: Frozen<Pod>, old?: Frozen<Pod>): void {
    if (old === pod) return
    this.#intake.begin()
    if (pod.spec.nodeName) this.#onAssigned(pod, old)
    else this.#onUnassigned(pod, old)
  }

  onDelete(pod: Frozen<Pod>): void {
    this.#intake.begin()
    const { cache, queue, nominator, onPodGone } = this.#deps
    queue.delete(keyOf(pod))
    nominator.delete(pod.metadata.uid ?? '')
    this.#reject(pod)
    const counted = cache.isPlaced(keyOf(pod), pod.metadata.uid)
    if (counted) cache.removePod(pod)
    if (counted || pod.spec.nodeName || pod.status?.nominatedNodeName) this.#freed(pod)
    else this.#intake.done({ resource: 'TargetPod', action: actions.Delete, old: pod, object: undefined })
    onPodGone(pod)
  }

  #onAssigned(pod: Frozen<Pod>, old: Frozen<Pod> | undefined): void {
    const { cache, queue, nominator } = this.#deps
    queue.delete(keyOf(pod))
    nominator.delete(pod.metadata.uid ?? '')
    if (isPodTerminal(pod)) {
      if (old && isPodTerminal(old)) return
      cache.removePod(pod)
      this.#freed(pod)
      return
    }
    cache.setPod(pod)
    if (!old?.spec.nodeName) {
      this.#intake.tell({ resource: 'AssignedPod', action: actions.Add, old: undefined, object: pod })
      return
    }
    this.#intake.tell({ resource: 'AssignedPod', action: podUpdateAction(old, pod), old, object: pod })
  }

  #onUnassigned(pod: Frozen<Pod>, old: Frozen<Pod> | undefined): void {
    const { cache, queue, nominator, profiles } = this.#deps
    const key = keyOf(pod)
    if (isPodTerminal(pod) || pod.metadata.deletionTimestamp || !profiles.has(pod.spec.schedulerName ?? 'default-scheduler')) {
      queue.delete(key)
      nominator.delete(pod.metadata.uid ?? '')
      this.#reject(pod)
      if (cache.forget(key, pod.metadata.uid)) this.#freed(pod)
      return
    }
    // A placed pod is in no queue any more: its binding is under way.
    if (cache.isAssumed(key, pod.metadata.uid)) return
    const nominated = pod.status?.nominatedNodeName ?? ''
    if (nominated !== '' && (!old || old.status?.nominatedNodeName !== nominated)) nominator.set(podInfo(pod), nominated)
    if (old?.status?.nominatedNodeName && nominated === '') nominator.delete(pod.metadata.uid ?? '')
    const isNew = !old || !queue.get(key)
    const event: ClusterEvent<'TargetPod'> = isNew
      ? { resource: 'TargetPod', action: actions.Add, old: undefined, object: pod }
      : { resource: 'TargetPod', action: podUpdateAction(old, pod), old, object: pod }
    if (isNew) queue.add(pod)
    else queue.update(pod, event)
    this.#intake.done(event)
    if (old?.status?.nominatedNodeName && old.status.nominatedNodeName !== nominated) this.#freed(old)
  }

  #reject(pod: Frozen<Pod>): void {
    this.#deps.waiting.get(pod.metadata.uid ?? '')?.reject('', 'removed')
  }

  #freed(pod: Frozen<Pod>): void {
    this.#intake.tell({ resource: 'AssignedPod', action: actions.Delete, old: pod, object: undefined })
  }
}
