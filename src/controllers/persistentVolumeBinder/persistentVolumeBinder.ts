/**
 * Brings claims and volumes together (L3): finds a volume for each claim or has one made, keeps the phases of both, and reclaims what was let go.
 * claimPlan.ts and volumePlan.ts decide; claims that wait for their first consumer are the scheduler's to place.
 * Upstream: pkg/controller/volume/persistentvolume (v1.36).
 */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import { isPodTerminal } from '#api/helpers/pods'
import { defaultStorageClassOf } from '#api/helpers/volumes'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { Timer } from '#base/clock'
import type { Component } from '#base/component'
import { persistentVolumeClaims, persistentVolumes, pods, storageClasses } from '#client/builtIn'
import { readYourWrites } from '#client/cache/readYourWrites'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler } from '../framework/reconciler.ts'
import { podClaimIndex, podClaimIndexers } from '../shared/indexes.ts'
import { createBinderMetrics } from './binderMetrics.ts'
import type { Binding } from './binding.ts'
import type { ClaimView } from './claimPlan.ts'
import { createClaimSync } from './claimSync.ts'
import { bestVolumeFor, volumeIndexers } from './matching.ts'
import type { BinderOptions } from './options.ts'
import { createReclaimer } from './reclaiming.ts'
import { createVolumeSync } from './volumeSync.ts'

export const persistentVolumeBinder: ControllerDescriptor<BinderOptions> = {
  name: 'persistentvolume-binder-controller',
  aliases: ['persistentvolume-binder'],
  serviceAccount: 'persistent-volume-binder',
  create: createBinder,
}

const defaultSyncPeriodMs = 15_000

function createBinder(context: ControllerContext, options: BinderOptions): Component {
  const { clock } = context
  const { syncPeriodMs = defaultSyncPeriodMs, dynamicProvisioning = true, provisionHostPaths = false } = options.volumeBinding ?? {}
  const volumeInformer = context.informers.of(persistentVolumes)
  const claimInformer = context.informers.of(persistentVolumeClaims)
  const podInformer = context.informers.of(pods)
  const classes = context.informers.of(storageClasses)
  volumeInformer.addIndexers(volumeIndexers)
  podInformer.addIndexers(podClaimIndexers)
  const events = context.events('persistentvolume-controller')
  const binding: Binding = {
    volumes: readYourWrites(context.client.of(persistentVolumes), volumeInformer, clock),
    claims: readYourWrites(context.client.of(persistentVolumeClaims), claimInformer, clock),
    events,
  }
  const metrics = createBinderMetrics(context.metrics, clock)
  const podsOf = (claimKey: string) => podInformer.store.byIndex(podClaimIndex, claimKey)
  const claimOf = (key: string) => claimInformer.store.get(key)
  const storageClass = (name: string) => classes.lister.get({ name })
  const makeHostPath = provisionHostPaths ? options.hostPaths?.make : undefined
  const { reclaim, ended } = createReclaimer({ ...binding, context, options, metrics, claimOf, podsOf })
  const view: ClaimView = {
    volume: (name) => volumeInformer.store.get(name),
    storageClass,
    defaultClass: () => defaultStorageClassOf(classes.store.list())?.metadata.name,
    best: (claim, onlyPrebound) => bestVolumeFor(claim, volumeInformer.store, onlyPrebound),
    waitingPods: (claim) =>
      podsOf(keyOf(claim))
        .filter(isWaiting)
        .map(({ metadata }) => metadata.name ?? ''),
  }
  const syncClaim = createClaimSync({ ...binding, metrics, storageClass, makeHostPath, dynamicProvisioning, claimOf, view })
  const enqueueClaim = (claim: Frozen<PersistentVolumeClaim>) => claimSync.queue.add(keyOf(claim))
  const syncVolume = createVolumeSync({ ...binding, context, reclaim, claimOf, volumeOf: view.volume, enqueueClaim })
  const { name } = persistentVolumeBinder
  // Two concurrent claims could choose the same volume, and one would have to retry.
  const claimSync = createReconciler(context, { name, queueName: 'claims', workers: 1, reconcile: syncClaim })
  const volumeSync = createReconciler(context, { name, queueName: 'volumes', workers: 1, reconcile: syncVolume })
  claimSync.watch(claimInformer, {
    onAdd: (claim) => observeClaim(undefined, claim),
    onUpdate: (old, claim) => observeClaim(old, claim),
    onDelete: (claim) => observeClaim(claim, undefined),
  })
  volumeSync.watch(volumeInformer, {
    onAdd: (volume) => observeVolume(undefined, volume),
    onUpdate: (old, volume) => observeVolume(old, volume),
    onDelete: (volume) => observeVolume(volume, undefined),
  })
  for (const informer of [volumeInformer, podInformer, classes]) claimSync.needs(informer as typeof podInformer)
  for (const informer of [claimInformer, podInformer]) volumeSync.needs(informer as typeof podInformer)
  let timer: Timer | undefined
  // Where there is nothing, nothing need be looked at.
  const arm = () => {
    if (claimInformer.store.size + volumeInformer.store.size > 0) timer ??= clock.timer(syncPeriodMs, syncAll)
  }
  const syncAll = () => {
    timer = undefined
    for (const key of claimInformer.store.keys()) claimSync.queue.add(key)
    for (const key of volumeInformer.store.keys()) volumeSync.queue.add(key)
    arm()
  }

  return {
    name,
    async run(signal) {
      try {
        await Promise.all([claimSync.run(signal), volumeSync.run(signal)])
        await ended()
      } finally {
        timer?.cancel()
      }
    },
  }

  function observeClaim(old: Frozen<PersistentVolumeClaim> | undefined, claim: Frozen<PersistentVolumeClaim> | undefined): void {
    metrics.claim(old, claim)
    arm()
    if (claim) claimSync.queue.add(keyOf(claim))
    else if (old) {
      metrics.forget(keyOf(old))
      // The claim is gone: no other event reports that its volume is free.
      if (old.spec.volumeName) volumeSync.queue.add(old.spec.volumeName)
    }
  }

  function observeVolume(old: Frozen<PersistentVolume> | undefined, volume: Frozen<PersistentVolume> | undefined): void {
    metrics.volume(old, volume)
    arm()
    if (volume) volumeSync.queue.add(keyOf(volume))
    else if (old) {
      metrics.succeeded(keyOf(old))
      const { claimRef } = old.spec
      if (claimRef) claimSync.queue.add(`${claimRef.namespace}/${claimRef.name}`)
    }
  }
}

function isWaiting(pod: Frozen<Pod>): boolean {
  return !isPodTerminal(pod) && !pod.spec.nodeName
}
