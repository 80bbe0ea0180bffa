/**
 * Deletes objects (L3): preconditions, graceful deletion, finalizers and the propagation policy.
 * Upstream: pkg/registry/rest/delete.go and pkg/registry/generic/registry/store.go.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { conflict, notFound, optimisticLockMessage } from '#api/machinery/status'
import { deepCopy } from '#base/frozen'
import { formatTime, parseTime } from '#base/time'
import { isLargeObject, turn } from '../core/fairLoop.ts'
import { type CacheEntry, prepareViews, transientEntry } from '../core/watch/cacheEntry.ts'
import { admitDeletion } from './admit.ts'
import { keyFor, type StoredResource, type WriteContext } from './storedResource.ts'
import { notingStoreLatency } from './storeLatency.ts'
import { attributesOf, type WriterDeps } from './writer.ts'

const orphanFinalizer = 'orphan'
const foregroundFinalizer = 'foregroundDeletion'
const maxTries = 100

export interface DeleteRequest {
  readonly name: string
  readonly gracePeriodSeconds?: number | undefined
  readonly propagationPolicy?: 'Orphan' | 'Background' | 'Foreground' | undefined
  readonly orphanDependents?: boolean | undefined
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined } | undefined
  readonly options?: Readonly<Record<string, unknown>> | undefined
}

interface Outcome {
  /** The last state of the deleted object, or the state of an object that stays until its finalizers or its grace period are done. */
  readonly entry: CacheEntry
  readonly deleted: boolean
}

export interface DeleteResult extends Outcome {
  /** The object's: the entry of a large one that is gone holds its bytes only. */
  readonly uid: string | undefined
}

/** Removes the object at once, or marks it if a grace period or finalizers keep it. */
export async function deleteObject(deps: WriterDeps, context: WriteContext, request: DeleteRequest): Promise<DeleteResult> {
  const { served } = context
  const key = keyFor(served, context.namespace, request.name)
  for (let attempt = 1; attempt <= maxTries; attempt++) {
    const current = await deps.storage.read(served.stored, key)
    if (!current) throw notFound(served, request.name)
    const { uid } = current.object.metadata
    checkPreconditions(context, request, current.object)
    // Each try is admitted again, because the state that it deletes may differ from the admitted one.
    if (!deps.admission.isEmpty) await admitState(deps, context, request, current)
    const result = await attemptDelete(deps, context, request, current)
    if (result) return { ...result, uid }
    if (context.cancellation?.aborted) context.cancellation.signal.throwIfAborted()
  }
  throw conflict(served, request.name, optimisticLockMessage)
}

/** Plugins see the object as the request's version shows it. */
async function admitState(deps: WriterDeps, context: WriteContext, request: DeleteRequest, current: CacheEntry): Promise<void> {
  const { view } = context.served
  const preparing = prepareViews([current], view, context.cancellation)
  if (preparing) await preparing
  await admitDeletion(deps.admission, attributesOf(context, 'DELETE', request.name, undefined, current.view(view).object, request.options))
}

/** Undefined when the deletion must be tried again on a newer state. */
async function attemptDelete(deps: WriterDeps, context: WriteContext, request: DeleteRequest, current: CacheEntry): Promise<Outcome | undefined> {
  const { stored } = context.served
  const isLarge = isLargeObject(current.storedBytes)
  if (isLarge) await turn()
  const plan = planDeletion(stored, request, current.object, deps.clock.now())
  if (isLarge) await turn()
  if (plan === 'pending') return { entry: current, deleted: false }
  if (plan === 'now') {
    if (context.dryRun) return { entry: current, deleted: true }
    return remove(deps, context, current)
  }
  const isLast = readyToDelete(stored, plan)
  if (context.dryRun) return { entry: await transientEntry(current.key, plan, current), deleted: isLast }
  const entry = await notingStoreLatency(deps, context, () => deps.storage.put(stored, current.key, plan, current, context.request?.trace))
  if (!entry || !isLast) return entry && { entry, deleted: false }
  // A graceful kind is marked before it is deleted, so that the answer and the DELETED event carry the mark.
  const removed = await remove(deps, context, entry)
  if (removed) return removed
  // Someone else may have deleted the marked object meanwhile.
  return (await deps.storage.read(stored, entry.key)) ? undefined : { entry, deleted: true }
}

/** Undefined when the stored state is another one by now. */
async function remove(deps: WriterDeps, context: WriteContext, entry: CacheEntry): Promise<Outcome | undefined> {
  const { stored } = context.served
  const revision = await notingStoreLatency(deps, context, () => deps.storage.delete(stored, entry, context.request?.trace))
  if (revision === undefined) return undefined
  if (stored.hooks?.afterDelete) await stored.hooks.afterDelete(entry.object)
  return { entry, deleted: true }
}

/** Decides a delete: remove the object now, mark it so that finalizers finish the deletion, or nothing because that is under way. */
export function planDeletion(stored: StoredResource, request: DeleteRequest, old: Frozen<KubeObject>, nowMs: number): 'now' | 'pending' | KubeObject {
  const object = changeable(stored, old)
  const { metadata } = object
  if (!metadata.deletionTimestamp) stored.strategy.prepareForDelete?.(object, nowMs)
  const finalizers = plannedFinalizers(stored, request, object)
  const before = old.metadata.finalizers ?? []
  const finalizersChanged = finalizers.length !== before.length || finalizers.some((one, at) => before[at] !== one)
  if (finalizers.length > 0) metadata.finalizers = finalizers
  else delete metadata.finalizers
  const graceful = applyGrace(stored, request, object, nowMs)
  // A pending graceful deletion keeps its finalizers, too.
  if (graceful === 'unchanged') return 'pending'
  const blocked = finalizers.length > 0 || isHeld(stored, object)
  if (graceful === 'immediate' && !blocked) return 'now'
  if (graceful === 'immediate') {
    if (metadata.deletionTimestamp && !finalizersChanged && metadata.deletionGracePeriodSeconds === 0) {
      return stored.strategy.termination ? terminating(stored, object, old) : 'pending'
    }
    markDeleting(metadata, nowMs, 0)
  }
  return terminating(stored, object, old)
}

/** A copy of what a deletion may change. Most kinds change their metadata alone: what a client has filled with many small values is not copied. */
function changeable({ strategy }: StoredResource, old: Frozen<KubeObject>): KubeObject {
  if (strategy.prepareForDelete || strategy.termination) return deepCopy<KubeObject>(old)
  return { ...(old as KubeObject), metadata: deepCopy<KubeObject['metadata']>(old.metadata) }
}

/** Some kinds record their deletion in the status, too. */
function terminating({ strategy: { termination } }: StoredResource, object: KubeObject, old: Frozen<KubeObject>): 'pending' | KubeObject {
  if (!termination) return object
  const changed = termination.show(object)
  return old.metadata.deletionTimestamp && !changed ? 'pending' : object
}

/** Sets deletionTimestamp and grace period for kinds with graceful deletion. */
function applyGrace(stored: StoredResource, request: DeleteRequest, object: KubeObject, nowMs: number): 'graceful' | 'immediate' | 'unchanged' {
  const { deletion } = stored.strategy
  if (!deletion) return 'immediate'
  const { metadata } = object
  if (metadata.deletionTimestamp) return shortenGrace(metadata, request.gracePeriodSeconds, nowMs)
  markDeleting(metadata, nowMs, deletion.gracePeriodSeconds(object, request.gracePeriodSeconds))
  return 'graceful'
}

/** Only a shorter period changes anything; a deletion cannot be taken back. */
function shortenGrace(metadata: KubeObject['metadata'], requested: number | undefined, nowMs: number): 'graceful' | 'immediate' | 'unchanged' {
  const before = metadata.deletionGracePeriodSeconds ?? 0
  if (before === 0) return 'immediate'
  const wanted = requested === undefined || requested >= 0 ? requested : 1
  if (wanted === undefined || wanted >= before) return 'unchanged'
  const endsAt = (parseTime(metadata.deletionTimestamp ?? '') ?? nowMs) + (wanted - before) * 1000
  const isOver = endsAt < nowMs
  metadata.deletionTimestamp = formatTime(isOver ? nowMs : endsAt)
  // The kubelet still has to end the pod, so that a period that is over becomes the shortest one.
  metadata.deletionGracePeriodSeconds = isOver && wanted > 0 ? 1 : wanted
  return 'graceful'
}

function markDeleting(metadata: KubeObject['metadata'], nowMs: number, graceSeconds: number): void {
  if (!metadata.deletionTimestamp) {
    metadata.deletionTimestamp = formatTime(nowMs + graceSeconds * 1000)
    if (metadata.generation !== undefined) metadata.generation++
  }
  metadata.deletionGracePeriodSeconds = graceSeconds
}

/** The finalizers of the object, with those of the garbage collector. The request's policy takes precedence over the object's finalizers. */
function plannedFinalizers(stored: StoredResource, request: DeleteRequest, old: Frozen<KubeObject> | KubeObject): string[] {
  const existing = old.metadata.finalizers ?? []
  const others = existing.filter((one) => one !== orphanFinalizer && one !== foregroundFinalizer)
  const said = request.orphanDependents !== undefined || request.propagationPolicy !== undefined
  const orphan = said
    ? request.orphanDependents === true || request.propagationPolicy === 'Orphan'
    : existing.includes(orphanFinalizer) || (stored.strategy.defaultPropagation === 'orphan' && !existing.includes(foregroundFinalizer))
  const foreground = said ? request.propagationPolicy === 'Foreground' : existing.includes(foregroundFinalizer)
  return [...others, ...(orphan ? [orphanFinalizer] : []), ...(foreground && !orphan ? [foregroundFinalizer] : [])]
}

/** Whether the kind keeps a deleted object for another reason than the finalizers of the metadata. */
function isHeld({ strategy }: StoredResource, object: Frozen<KubeObject> | KubeObject): boolean {
  return strategy.termination?.isHeld(object as Frozen<KubeObject>) ?? false
}

/** Whether an update has removed the last reason to keep a deleted object. Upstream: ShouldDeleteDuringUpdate. */
export function readyToDelete(stored: StoredResource, object: Frozen<KubeObject> | KubeObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = object.metadata
  if (!deletionTimestamp || (deletionGracePeriodSeconds ?? 0) > 0) return false
  return (finalizers?.length ?? 0) === 0 && !isHeld(stored, object)
}

function checkPreconditions(context: WriteContext, request: DeleteRequest, object: Frozen<KubeObject>): void {
  const { uid, resourceVersion } = request.preconditions ?? {}
  const found = object.metadata
  if (uid !== undefined && uid !== found.uid) {
    const why = `the UID in the precondition (${uid}) does not match the UID in record (${found.uid}). The object might have been deleted and then recreated`
    throw conflict(context.served, request.name, why)
  }
  if (resourceVersion !== undefined && resourceVersion !== found.resourceVersion) {
    const why = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${found.resourceVersion}). The object might have been modified`
    throw conflict(context.served, request.name, why)
  }
}
