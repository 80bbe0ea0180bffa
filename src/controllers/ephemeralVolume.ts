/**
 * Makes the claims that pods bring along as volumes of their own (L3): each goes with its pod. Upstream: pkg/controller/volume/ephemeral (v1.36).
 */
import type { PersistentVolumeClaim, Pod, Volume } from '#api/gen/types/core.v1'
import { controllerReference } from '#api/helpers/owners'
import { claimNameOf, otherPodsClaim } from '#api/helpers/volumes'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import { persistentVolumeClaims, pods } from '#client/builtIn'
import type { NewObject } from '#client/client'
import type { ControllerContext, ControllerDescriptor } from './framework/controller.ts'
import { createReconciler } from './framework/reconciler.ts'
import { podClaimIndex, podClaimIndexers } from './shared/indexes.ts'

export const ephemeralVolume: ControllerDescriptor = {
  name: 'ephemeral-volume-controller',
  aliases: ['ephemeral-volume'],
  serviceAccount: 'ephemeral-volume-controller',
  create: createEphemeralVolumeController,
}

function createEphemeralVolumeController(context: ControllerContext) {
  const client = context.client.of(persistentVolumeClaims)
  const podInformer = context.informers.of(pods)
  const claims = context.informers.of(persistentVolumeClaims)
  podInformer.addIndexers(podClaimIndexers)
  const events = context.events('ephemeral_volume')
  const attempts = context.metrics.counter({
    name: 'ephemeral_volume_controller_create_total',
    help: 'How many claims were to be made.',
  })
  const failures = context.metrics.counter({
    name: 'ephemeral_volume_controller_create_failures_total',
    help: 'How many claims could not be made.',
  })
  const reconciler = createReconciler(context, { name: ephemeralVolume.name, queueName: 'ephemeral_volume', workers: 5, reconcile })
  const enqueue = (pod: Frozen<Pod>) => {
    if (!pod.metadata.deletionTimestamp && pod.spec.volumes?.some(({ ephemeral }) => ephemeral !== undefined)) reconciler.queue.add(keyOf(pod))
  }
  // What a pod brings along never changes.
  reconciler.watch(podInformer, { onAdd: enqueue })
  reconciler.watch(claims, {
    onDelete: (claim) => {
      for (const pod of podInformer.store.byIndex(podClaimIndex, keyOf(claim))) enqueue(pod)
    },
  })
  return reconciler

  async function reconcile(key: string, signal: AbortSignal): Promise<undefined> {
    const pod = podInformer.store.get(key)
    if (!pod || pod.metadata.deletionTimestamp) return
    for (const volume of pod.spec.volumes ?? []) {
      if (!volume.ephemeral) continue
      try {
        await ensureClaim(pod, volume, signal)
      } catch (error) {
        events.event(pod, 'Warning', 'FailedBinding', `ephemeral volume ${volume.name}: ${messageOf(error)}`)
        throw error
      }
    }
  }

  /** @throws Error when a claim of another owner has the name, or the server refuses */
  async function ensureClaim(pod: Frozen<Pod>, volume: Frozen<Volume>, signal: AbortSignal): Promise<void> {
    const name = claimNameOf(pod, volume) ?? ''
    const there = claims.lister.get({ namespace: pod.metadata.namespace, name })
    if (there) {
      const problem = otherPodsClaim(pod, there)
      if (problem !== undefined) throw new Error(problem)
      return
    }
    attempts.inc()
    try {
      await client.create(claimOf(pod, volume, name), { signal })
    } catch (error) {
      failures.inc()
      throw new Error(`create PVC ${name}: ${messageOf(error)}`, { cause: error })
    }
  }
}

function claimOf(pod: Frozen<Pod>, { ephemeral }: Frozen<Volume>, name: string): NewObject<PersistentVolumeClaim> {
  const { metadata: given, spec } = ephemeral?.volumeClaimTemplate ?? { spec: {} }
  const { annotations, labels } = given ?? {}
  const owner = { namespace: pod.metadata.namespace, name, ownerReferences: [controllerReference(pod)] }
  const metadata = { ...owner, ...(annotations ? { annotations: { ...annotations } } : {}), ...(labels ? { labels: { ...labels } } : {}) }
  return { metadata, spec: deepCopy<PersistentVolumeClaim['spec']>(spec) }
}
