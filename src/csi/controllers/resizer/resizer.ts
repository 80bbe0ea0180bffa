/** Expands volumes, and gives them other parameters (L3): expanding.ts and modifying.ts. Upstream: external-resizer. */
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { compareQuantities } from '#api/machinery/quantity'
import type { Component } from '#base/component'
import { persistentVolumeClaims, persistentVolumes, volumeAttributesClasses } from '#client/builtIn'
import { createReconciler, type Reconciler, type ReconcilerOptions } from '#controllers/framework/reconciler'
import { type CsiContext, retryLimiter } from '../context.ts'
import { Expanding } from './expanding.ts'
import { resizeStatusOf } from './expandPlan.ts'
import { Modifying } from './modifying.ts'

type Claim = Frozen<PersistentVolumeClaim>

const defaultWorkers = 10

export function createResizer(context: CsiContext): Component {
  const { driver } = context
  const events = context.events(`external-resizer ${driver.name}`)
  const expanding = new Expanding(context, events)
  const modifying = new Modifying(context, events)
  const expands = driver.controller.has('EXPAND_VOLUME') || driver.expandsOnNodes
  const modifies = driver.controller.has('MODIFY_VOLUME')
  const syncs = [
    ...(expands ? [claimSync(context, `${driver.name}-pvc`, (key, signal) => expanding.reconcile(key, signal), mayNeedExpansion)] : []),
    ...(modifies ? [modifySync(context, (key, signal) => modifying.reconcile(key, signal))] : []),
  ]
  return { name: `${driver.name} resizer`, run: async (signal) => void (await Promise.all(syncs.map((sync) => sync.run(signal)))) }
}

/** Whether the resizer must look again; it makes most of these changes itself. */
function mayNeedExpansion(old: Claim, now: Claim): boolean {
  const wanted = ({ spec }: Claim) => spec.resources?.requests?.storage ?? '0'
  const has = ({ status }: Claim) => status.capacity?.storage ?? '0'
  const isResync = old.metadata.resourceVersion === now.metadata.resourceVersion
  return (
    isResync || compareQuantities(wanted(old), wanted(now)) !== 0 || compareQuantities(has(now), has(old)) > 0 || resizeStatusOf(old) !== resizeStatusOf(now)
  )
}

function mayNeedModification({ spec: old }: Claim, { spec, status }: Claim): boolean {
  return (old.volumeAttributesClassName ?? '') !== (spec.volumeAttributesClassName ?? '') || status.modifyVolumeStatus === undefined
}

function claimSync(
  context: CsiContext,
  queueName: string,
  reconcile: ReconcilerOptions['reconcile'],
  matters: (old: Claim, now: Claim) => boolean,
): Reconciler {
  const { driver, informers, options } = context
  const workers = options.workers ?? defaultWorkers
  const sync = createReconciler(context, { name: `${driver.name} resizer`, queueName, workers, rateLimiter: retryLimiter(context), reconcile })
  const enqueue = (claim: Claim) => {
    if (claim.status.phase === 'Bound') sync.queue.add(keyOf(claim))
  }
  sync.watch(informers.of(persistentVolumeClaims), {
    onAdd: enqueue,
    onUpdate: (old, now) => (matters(old, now) || old.status.phase !== now.status.phase) && enqueue(now),
  })
  sync.needs(informers.of(persistentVolumes))
  return sync
}

/** A class that a claim waits for may be created later. */
function modifySync(context: CsiContext, reconcile: ReconcilerOptions['reconcile']): Reconciler {
  const claims = context.informers.of(persistentVolumeClaims)
  const sync = claimSync(context, `${context.driver.name}-modify`, reconcile, mayNeedModification)
  sync.watch(context.informers.of(volumeAttributesClasses), {
    onAdd: ({ metadata }) => {
      for (const claim of claims.store.list()) if (claim.spec.volumeAttributesClassName === metadata.name) sync.queue.add(keyOf(claim))
    },
  })
  return sync
}
