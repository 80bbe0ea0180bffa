/**
 * Frees the sources of copies (L3): a claim that is being deleted, once no claim waits for its clone; a snapshot that kept the finalizer because its claim was
 * deleted meanwhile. Upstream: external-provisioner, clone_controller.go, snapshot_finalizer_controller.go.
 */
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { persistentVolumeClaims } from '#client/builtIn'
import { listAll } from '#client/listAll'
import { createReconciler, everyPeriod, type Reconciler } from '#controllers/framework/reconciler'
import { isProtected, mayGo } from '#controllers/shared/protection'
import { type CsiContext, retryLimiter } from '../context.ts'
import { setFinalizer } from '../finalizers.ts'
import { isSnapshotReference, volumeSnapshots } from '../snapshotter/snapshotTypes.ts'
import { cloneFinalizer, releaseSnapshot, snapshotFinalizer } from './contentSource.ts'
import { dataSourceOf } from './createRequest.ts'

type Claim = Frozen<PersistentVolumeClaim>

const sweepPeriodMs = 300_000
const isPending = ({ status }: Claim) => (status?.phase ?? 'Pending') === 'Pending'

export function createSourceProtection(context: CsiContext, name: string): Reconciler {
  const { client, driver, informers } = context
  const claims = informers.of(persistentVolumeClaims)
  const isCloning = ({ metadata }: Claim) =>
    claims.store.list().some((claim) => {
      const source = claim.metadata.namespace === metadata.namespace && isPending(claim) ? dataSourceOf(claim) : undefined
      return source?.kind === 'PersistentVolumeClaim' && source.name === metadata.name
    })
  const sync = createReconciler(context, {
    ...{ name, workers: 1 },
    queueName: 'cloning',
    rateLimiter: retryLimiter(context),
    reconcile: async (key, signal) => {
      const claim = claims.store.get(key)
      if (claim && mayGo(claim, cloneFinalizer) && !isCloning(claim))
        await setFinalizer(client.of(persistentVolumeClaims), claim, cloneFinalizer, false, signal)
      return undefined
    },
  })
  const freeSourceOf = (claim: Claim) => {
    const source = dataSourceOf(claim)
    if (source?.kind === 'PersistentVolumeClaim') sync.queue.add(`${claim.metadata.namespace}/${source.name}`)
  }
  sync.watch(claims, {
    onAdd: (claim) => mayGo(claim, cloneFinalizer) && sync.queue.add(keyOf(claim)),
    onUpdate: (_, claim) => {
      if (mayGo(claim, cloneFinalizer)) sync.queue.add(keyOf(claim))
      if (!isPending(claim)) freeSourceOf(claim)
    },
    onDelete: freeSourceOf,
  })
  if (driver.controller.has('CREATE_DELETE_SNAPSHOT'))
    sync.also((signal) => everyPeriod(context, name, sweepPeriodMs, () => freeSnapshots(context, signal), signal))
  return sync
}

async function freeSnapshots({ client, informers }: CsiContext, signal: AbortSignal): Promise<void> {
  const kept = new Set<string>()
  for (const claim of informers.of(persistentVolumeClaims).store.list()) {
    const source = dataSourceOf(claim)
    if (source && isPending(claim) && isSnapshotReference(source)) kept.add(`${claim.metadata.namespace}/${source.name}`)
  }
  try {
    for (const snapshot of (await listAll(client.of(volumeSnapshots), { signal })).items) {
      const { namespace, name = '' } = snapshot.metadata
      if (isProtected(snapshot, snapshotFinalizer) && !kept.has(keyOf(snapshot))) await releaseSnapshot(client, { namespace, name }, signal)
    }
  } catch (error) {
    // Snapshots are not installed.
    if (!isStatus(error, 'NotFound')) throw error
  }
}
