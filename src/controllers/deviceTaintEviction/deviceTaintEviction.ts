/**
 * Deletes pods whose devices have NoExecute taints that their claims do not tolerate, at once or when tolerationSeconds are over (L3). Rules that taint
 * devices from outside their slices (DeviceTaintRule) are off by default upstream and not read here. Upstream: pkg/controller/devicetainteviction (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { ResourceClaim, ResourceSlice } from '#api/gen/types/resource.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { least } from '#base/extremes'
import { pods, resourceClaims, resourceSlices } from '#client/builtIn'
import type { Indexers } from '#client/cache/indexer'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, type Result } from '../framework/reconciler.ts'
import { isPodDone, knownClaimNames } from '../resourceClaim/podClaims.ts'
import { endPod } from '../shared/endPod.ts'
import { createEvictionMetrics } from '../shared/evictionMetrics.ts'
import { evictionTime, poolKey } from './plan.ts'

export const deviceTaintEviction: ControllerDescriptor = {
  name: 'device-taint-eviction-controller',
  aliases: [],
  serviceAccount: 'device-taint-eviction-controller',
  create: createDeviceTaintEvictionController,
}

const byPool = 'devicePool'
const sliceIndexers: Indexers<ResourceSlice> = { [byPool]: ({ spec }) => [poolKey({ driver: spec.driver, pool: spec.pool.name })] }
const claimIndexers: Indexers<ResourceClaim> = { [byPool]: ({ status }) => (status?.allocation?.devices?.results ?? []).map(poolKey) }

function createDeviceTaintEvictionController(context: ControllerContext) {
  const { client, clock } = context
  const podInformer = context.informers.of(pods)
  const claims = context.informers.of(resourceClaims)
  const slices = context.informers.of(resourceSlices)
  claims.addIndexers(claimIndexers)
  slices.addIndexers(sliceIndexers)
  const events = context.events('device-taint-eviction')
  const scheduled = new Set<string>()
  const evictionMetrics = createEvictionMetrics(context.metrics, 'device_taint_eviction_controller', 'DeviceTaintEvictionController')
  const reconciler = createReconciler(context, { name: deviceTaintEviction.name, queueName: 'device_taint_eviction', workers: 10, reconcile })

  const usersOf = ({ metadata, status }: Frozen<ResourceClaim>) => {
    for (const { resource, name } of status?.reservedFor ?? []) if (resource === 'pods') reconciler.queue.add(`${metadata.namespace}/${name}`)
  }
  const onSlice = ({ spec }: Frozen<ResourceSlice>) => {
    for (const claim of claims.store.byIndex(byPool, poolKey({ driver: spec.driver, pool: spec.pool.name }))) usersOf(claim)
  }
  reconciler.watch(slices, { onAdd: onSlice, onUpdate: (_, slice) => onSlice(slice), onDelete: onSlice })
  reconciler.watch(claims, { onAdd: usersOf, onUpdate: (_, claim) => usersOf(claim), onDelete: usersOf })
  const onPod = (pod: Frozen<Pod>) => {
    if (pod.spec.nodeName && knownClaimNames(pod).length > 0) reconciler.queue.add(keyOf(pod))
  }
  reconciler.watch(podInformer, { onAdd: onPod, onUpdate: (_, pod) => onPod(pod), onDelete: (pod) => void scheduled.delete(keyOf(pod)) })
  return reconciler

  async function reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const pod = podInformer.store.get(key)
    if (!pod || pod.metadata.deletionTimestamp) return undefined
    const dueMs = isPodDone(pod) || !pod.spec.nodeName ? undefined : dueTime(pod)
    if (dueMs === undefined) {
      if (scheduled.delete(key)) events.event(pod, 'Normal', 'DeviceTaintManagerEviction', 'Cancelling deletion')
      return undefined
    }
    scheduled.add(key)
    const waitMs = dueMs - clock.now()
    if (waitMs > 0) return { requeueAfterMs: waitMs }
    events.event(pod, 'Normal', 'DeviceTaintManagerEviction', 'Marking for deletion')
    const message = 'Device Taint manager: deleting due to NoExecute taint'
    await endPod(client, pod, { signal, nowMs: clock.now(), graceful: true, reason: 'DeletionByDeviceTaintManager', message })
    evictionMetrics.ended(-waitMs)
    return undefined
  }

  /** The earliest of those of the claims that are really the pod's. */
  function dueTime(pod: Frozen<Pod>): number | undefined {
    const { namespace, uid } = pod.metadata
    const times = knownClaimNames(pod).flatMap((name) => {
      const claim = claims.lister.get({ namespace, name })
      if (!claim?.status?.reservedFor?.some((consumer) => consumer.uid === uid)) return []
      return evictionTime(claim, (pool) => slices.store.byIndex(byPool, pool), clock.now()) ?? []
    })
    return times.length === 0 ? undefined : least(times)
  }
}
