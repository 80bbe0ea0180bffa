/**
 * Changes one object (L3): update, patch and apply, of the object or of a subresource that is a view of it. The transformation runs again
 * on the newest state when another write came first. A write that changes nothing keeps the resourceVersion.
 * Upstream: handlers/update.go and patch.go, pkg/registry/rest/update.go, pkg/registry/generic/registry/store.go.
 */
import type { KindStrategy } from '#api/kinds/defineKind'
import { type FieldError, limitedFaults } from '#api/machinery/fieldPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { validateObjectMetaUpdate } from '#api/machinery/objectMeta'
import { setOwn } from '#api/machinery/objects'
import { badRequest, conflict, internalError, isStatus, notFound, optimisticLockMessage } from '#api/machinery/status'
import { withNils } from '#api/schema/nils'
import { ownValue } from '#base/bareMap'
import { compilingInSteps } from '#cel/compilingInSteps'
import type { AuthorizationAttributes } from '../authz/authorizer.ts'
import { mustBeAllowed } from '../authz/forbidden.ts'
import { inFewSteps, isLargeObject, turn } from '../core/fairLoop.ts'
import { deepEqual, mayBeSameContent, mayBeSameSpec, sameObject, sameSpec } from '../core/sameObject.ts'
import { CacheEntry, encodeStored, prepareViews, transientEntry } from '../core/watch/cacheEntry.ts'
import { admit } from './admit.ts'
import { createObject, ensureNamespace } from './create.ts'
import { readyToDelete } from './deletion.ts'
import { trackManagers } from './managers.ts'
import { keyFor, type WriteContext } from './storedResource.ts'
import { notingStoreLatency } from './storeLatency.ts'
import { keptSystemMetadata } from './systemMetadata.ts'
import { attributesOf, checkRights, rootPath, strategyContext, throwIfInvalid, type WriterDeps } from './writer.ts'

/** Attempts after conflicts; each fails only because another write succeeded, so the system always makes progress. */
const maxTries = 100

export interface UpdateRequest {
  readonly name: string
  /**
   * Makes the new object, of the served version, from the newest state; it belongs to the registry from then on.
   * @param isLarge whether each pass over the object must have its own turn of the event loop
   */
  transform(current: Frozen<KubeObject> | undefined, isLarge?: boolean): Promise<KubeObject> | KubeObject
  /** Apply may create objects of kinds that do not allow creation on update. */
  readonly forceAllowCreate?: boolean | undefined
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined } | undefined
  readonly options?: Readonly<Record<string, unknown>> | undefined
  /** Admission sees a view of the object, such as its scale. `transform` has then run the mutating plugins itself, on that view. */
  readonly admitted?: { readonly context: WriteContext; view(object: Frozen<KubeObject>): KubeObject } | undefined
}

export interface UpdateResult {
  readonly entry: CacheEntry
  readonly created: boolean
  /** The write removed the last finalizer, and the object with it. */
  readonly deleted: boolean
}

export async function updateObject(deps: WriterDeps, context: WriteContext, request: UpdateRequest): Promise<UpdateResult> {
  const { served } = context
  const key = keyFor(served, context.namespace, request.name)
  for (let attempt = 1; attempt <= maxTries; attempt++) {
    const current = await deps.storage.read(served.stored, key)
    const result = current ? await attemptUpdate(deps, context, request, current) : await createInstead(deps, context, request)
    if (result) return result
    if (context.cancellation?.aborted) context.cancellation.signal.throwIfAborted()
  }
  throw conflict(served, request.name, optimisticLockMessage)
}

/** Undefined when the object exists by now. */
async function createInstead(deps: WriterDeps, context: WriteContext, request: UpdateRequest): Promise<UpdateResult | undefined> {
  const { served, subresource } = context
  const allowed = subresource === '' && (request.forceAllowCreate || served.stored.strategy.allowCreateOnUpdate)
  if (!allowed) throw notFound(served, request.name)
  const object = await request.transform(undefined)
  checkName(context, request.name, object)
  const uid = request.preconditions?.uid ?? object.metadata.uid
  if (uid) throw preconditionFailed(context, request.name, 'UID', uid, '')
  delete object.metadata.resourceVersion
  try {
    const authorize = () => mustBeAllowed(deps.authorizers, creationOf(context, request.name))
    const entry = await createObject(deps, context, object, { options: request.options, authorize })
    return { entry, created: true, deleted: false }
  } catch (error) {
    // When another request created the object meanwhile, the next try updates it.
    const key = keyFor(served, context.namespace, request.name)
    if (isStatus(error, 'AlreadyExists') && (await deps.storage.read(served.stored, key))) return undefined
    throw error
  }
}

/** The further permission of an update that creates. */
function creationOf({ served, subresource, namespace, user, request }: WriteContext, name: string): AuthorizationAttributes {
  return {
    user,
    verb: 'create',
    isResourceRequest: true,
    path: request?.info?.path ?? '',
    namespace,
    apiGroup: served.group,
    apiVersion: served.version,
    resource: served.resource,
    subresource,
    name,
  }
}

/** Undefined when the write must be tried again on a newer state. */
async function attemptUpdate(deps: WriterDeps, context: WriteContext, request: UpdateRequest, current: CacheEntry): Promise<UpdateResult | undefined> {
  const { served } = context
  const { stored } = served
  const preparing = prepareViews([current], served.strategyView ?? served.view, context.cancellation)
  if (preparing) await preparing
  const old = current.view(served.strategyView).object
  const oldServed = current.view(served.view).object
  const isLarge = isLargeObject(Math.max(current.storedBytes, context.request?.bodyBytes ?? 0))
  if (isLarge) await turn()
  const changed = await request.transform(oldServed, isLarge)
  if (isLarge) await turn()
  checkName(context, request.name, changed)
  checkPreconditions(context, request, changed, old)
  ensureNamespace(context, changed)
  checkResourceVersion(context, request.name, changed.metadata.resourceVersion, current)
  const tracking = context.managedFieldsDone ? undefined : trackManagers(context, changed, oldServed, deps.clock.now(), isLarge)
  if (tracking) await tracking
  if (isLarge) await turn()
  const { admitted } = request
  if (!admitted) await admit(deps.admission, attributesOf(context, 'UPDATE', request.name, changed, oldServed, request.options))
  const object = served.toStrategy(changed)
  prepare(deps, context, object, old)
  if (isLarge) await turn()
  // Most kinds have no hook and need no await.
  const reservation = stored.hooks?.beforeUpdate && (await stored.hooks.beforeUpdate(object, old, context.dryRun))
  let isStored = false
  try {
    const ofMetadata = limitedFaults((root) => validateObjectMetaUpdate(object.metadata, old.metadata, root.child('metadata')))
    if (isLarge) await turn()
    const validating = faultsOfKind(deps, context, object, old)
    const ofKind = validating instanceof Promise ? await validating : validating
    throwIfInvalid(context, request.name, ofMetadata.length === 0 ? ofKind : [...ofMetadata, ...ofKind])
    finishValidation(deps, context, object, old)
    if (isLarge) await turn()
    if (stored.hooks?.checkRights) await checkRights(deps, context, request.name, object, old)
    if (isLarge) await turn()
    const attributes = admitted
      ? attributesOf(admitted.context, 'UPDATE', request.name, admitted.view(object as Frozen<KubeObject>), admitted.view(old), request.options)
      : attributesOf(context, 'UPDATE', request.name, object, old, request.options)
    await deps.admission.validate(attributes)
    if (isLarge) await turn()
    if (isUnchanged(object, old) && !served.isOutdated?.(current) && !(stored.cache.values.transformed && (await deps.storage.isStale(stored, current)))) {
      return { entry: current, created: false, deleted: false }
    }
    if (context.dryRun) {
      return { entry: await transientEntry(current.key, await served.toStored(object), current), created: false, deleted: false }
    }
    if (isLarge) await turn()
    const result = await write(deps, context, object, current)
    isStored = result !== undefined
    return result
  } finally {
    if (reservation) await reservation.settle(isStored)
  }
}

async function write(deps: WriterDeps, context: WriteContext, object: KubeObject, current: CacheEntry): Promise<UpdateResult | undefined> {
  const { stored } = context.served
  if (readyToDelete(stored, object)) {
    const last = encodeStored(await context.served.toStored(object))
    const revision = await notingStoreLatency(deps, context, () => deps.storage.delete(stored, current, context.request?.trace))
    if (revision === undefined) return undefined
    if (stored.hooks?.afterDelete) await stored.hooks.afterDelete(object as Frozen<KubeObject>)
    return { entry: CacheEntry.stored(current.key, last, revision, current.createRevision), created: false, deleted: true }
  }
  const converting = context.served.toStored(object)
  const converted = converting instanceof Promise ? await converting : converting
  const trace = context.request?.trace
  trace?.changing(stored.resource, object.metadata)
  const entry = await notingStoreLatency(deps, context, () => deps.storage.put(stored, current.key, converted, current, trace))
  return entry && { entry, created: false, deleted: false }
}

function prepare(deps: WriterDeps, context: WriteContext, object: KubeObject, old: Frozen<KubeObject>): void {
  const { stored } = context.served
  const { strategy } = stored
  const input = { obj: object, old, path: rootPath, context: strategyContext(deps, context) }
  object.metadata = keptSystemMetadata(object.metadata, old.metadata)
  if (context.subresource === '') {
    if (strategy.prepareForUpdate) strategy.prepareForUpdate(input)
    else if (stored.hasStatus) restore(object, old, 'status')
  } else {
    const view = viewStrategy(context)
    if (view?.prepareForUpdate) view.prepareForUpdate(input)
    else if (context.subresource === 'status') keepAllButStatus(object, old)
  }
  // A strategy may insert frozen parts of the old object, but metadata must stay writable.
  if (Object.isFrozen(object.metadata)) object.metadata = keptSystemMetadata(object.metadata, old.metadata)
  const generation = old.metadata.generation
  if (strategy.generation === false || generation === undefined) return
  object.metadata.generation = countsGeneration(context) && changesGeneration(strategy, object, old) ? generation + 1 : generation
}

function changesGeneration({ generationCountsStatus, generationCountsLabels }: KindStrategy, object: KubeObject, old: Frozen<KubeObject>): boolean {
  return (
    !(
      sameSpec(object, old, generationCountsStatus) ||
      (mayBeSameSpec(object, old, generationCountsStatus) && sameSpec(withNils(object), withNils(old), generationCountsStatus))
    ) ||
    (generationCountsLabels === true && !deepEqual(object.metadata.labels, old.metadata.labels))
  )
}

/** A write of the status does not change what the user asked for. */
function countsGeneration(context: WriteContext): boolean {
  return context.subresource !== 'status' && (context.subresource === '' || viewStrategy(context)?.generation !== false)
}

type FieldErrors = readonly FieldError[]

function faultsOfKind(deps: WriterDeps, context: WriteContext, object: KubeObject, old: Frozen<KubeObject>): FieldErrors | Promise<FieldErrors> {
  const input = { obj: object, old, context: strategyContext(deps, context) }
  const strategy = context.subresource === '' ? context.served.stored.strategy : viewStrategy(context)
  return inFewSteps(compilingInSteps(() => limitedFaults((path) => strategy?.validateUpdate?.({ ...input, path }) ?? [])))
}

function finishValidation(deps: WriterDeps, context: WriteContext, object: KubeObject, old: Frozen<KubeObject>): void {
  const { strategy } = context.served.stored
  const input = { obj: object, old, path: rootPath, context: strategyContext(deps, context) }
  if (context.subresource === '') for (const warning of strategy.warnings?.(input, old) ?? []) context.warn(warning)
  strategy.canonicalize?.(object)
}

/** In lists that Go never omits, absent, empty and null are equal. */
function isUnchanged(object: KubeObject, old: Frozen<KubeObject>): boolean {
  return sameObject(object, old) || (mayBeSameContent(object, old) && sameObject(withNils(object), withNils(old)))
}

function viewStrategy(context: WriteContext) {
  const { strategy } = context.served.stored
  return context.subresource === 'status' ? strategy.status : ownValue(strategy.subresources, context.subresource)
}

function keepAllButStatus(object: KubeObject, old: Frozen<KubeObject>): void {
  const fields = object as unknown as Record<string, unknown>
  for (const field of Object.keys(fields)) if (field !== 'status' && field !== 'metadata' && !Object.hasOwn(old, field)) delete fields[field]
  for (const [field, value] of Object.entries(old)) if (field !== 'status' && field !== 'metadata') setOwn(fields, field, value)
}

function restore(object: KubeObject, old: Frozen<KubeObject>, field: string): void {
  const fields = object as unknown as Record<string, unknown>
  const before = (old as unknown as Record<string, unknown>)[field]
  if (before === undefined) delete fields[field]
  else if (!deepEqual(fields[field], before)) fields[field] = before
}

function checkName(context: WriteContext, name: string, object: KubeObject): void {
  const own = object.metadata.name ?? ''
  if (own === name) return
  if (own !== '') throw badRequest(`the name of the object (${own}) does not match the name on the URL (${name})`)
  if (context.subresource === '') throw badRequest(`name must be provided`)
  object.metadata.name = name
}

function checkPreconditions(context: WriteContext, request: UpdateRequest, object: KubeObject, old: Frozen<KubeObject>): void {
  const uid = request.preconditions?.uid ?? object.metadata.uid
  if (uid && uid !== old.metadata.uid) throw preconditionFailed(context, request.name, 'UID', uid, old.metadata.uid ?? '')
  const { resourceVersion } = request.preconditions ?? {}
  const found = old.metadata.resourceVersion ?? ''
  if (resourceVersion && resourceVersion !== found) throw preconditionFailed(context, request.name, 'ResourceVersion', resourceVersion, found)
}

function preconditionFailed(context: WriteContext, name: string, what: 'UID' | 'ResourceVersion', wanted: string, found: string) {
  const key = context.served.stored.prefix + keyFor(context.served, context.namespace, name)
  const detail = `Precondition failed: ${what} in precondition: ${wanted}, ${what} in object meta: ${found}`
  return conflict(context.served, name, `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${detail}`)
}

/** Endpoints that follow the kind's rule for writes without a resourceVersion; the others change the object that they have read. */
const ownStrategy: ReadonlySet<string> = new Set(['', 'status'])

function checkResourceVersion(context: WriteContext, name: string, asked: string | undefined, current: CacheEntry): void {
  const { served } = context
  if (!asked || asked === '0') {
    if (served.stored.strategy.allowUnconditionalUpdate !== false || !ownStrategy.has(context.subresource)) return
    throwIfInvalid(context, name, [
      { type: 'FieldValueInvalid', field: 'metadata.resourceVersion', body: 'Invalid value: 0x0: must be specified for an update' },
    ])
    return
  }
  if (!/^\d+$/.test(asked)) throw internalError(new Error(`strconv.ParseUint: parsing ${JSON.stringify(asked)}: invalid syntax`))
  if (BigInt(asked) !== BigInt(current.resourceVersion)) throw conflict(served, name, optimisticLockMessage)
}
