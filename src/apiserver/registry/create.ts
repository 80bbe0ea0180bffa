/**
 * Creates one object (L3), in upstream's order: managed fields, mutating admission, system fields, prepareForCreate, validation, warnings,
 * canonicalize, validating admission, store.
 * Upstream: apiserver/pkg/endpoints/handlers/create.go, pkg/registry/rest/create.go, pkg/registry/generic/registry/store.go.
 */
import { limitedFaults } from '#api/machinery/fieldPath'
import type { KubeObject } from '#api/machinery/meta'
import { nameIsDnsSubdomain } from '#api/machinery/names'
import { validateObjectMeta } from '#api/machinery/objectMeta'
import { alreadyExists, badRequest, StatusError } from '#api/machinery/status'
import { deepCopy } from '#base/frozen'
import { randomName, randomUid } from '#base/random'
import { formatTime } from '#base/time'
import { compilingInSteps } from '#cel/compilingInSteps'
import { inFewSteps, isLargeObject, turn } from '../core/fairLoop.ts'
import { type CacheEntry, transientEntry } from '../core/watch/cacheEntry.ts'
import { admit } from './admit.ts'
import { trackManagers } from './managers.ts'
import { keyFor, type WriteContext } from './storedResource.ts'
import { notingStoreLatency } from './storeLatency.ts'
import { newSystemMetadata } from './systemMetadata.ts'
import { attributesOf, checkRights, rootPath, strategyContext, throwIfInvalid, type WriterDeps } from './writer.ts'

/** How often a name made from generateName is tried again on a collision, as upstream. */
const generateNameTries = 8

export interface CreateRequest {
  /** Options that differ from the query's. */
  readonly options?: Readonly<Record<string, unknown>> | undefined
  /** Checks the permission to create, if the request's verb is another one. Runs after validation, before validating admission. */
  readonly authorize?: (() => Promise<void>) | undefined
}

/** `object` is decoded and defaulted, of the served version; it belongs to the registry from here on. */
export async function createObject(deps: WriterDeps, context: WriteContext, object: KubeObject, request: CreateRequest = {}): Promise<CacheEntry> {
  ensureNamespace(context, object)
  if (object.metadata.resourceVersion) throw new StatusError('', 'resourceVersion should not be set on objects to be created')
  const tracking = context.managedFieldsDone ? undefined : trackManagers(context, object, undefined, deps.clock.now())
  if (tracking) await tracking
  const isLarge = isLargeObject(context.request?.bodyBytes ?? 0)
  if (isLarge) await turn()
  await admit(deps.admission, attributesOf(context, 'CREATE', object.metadata.name ?? '', object, undefined, request.options))
  if (isLarge) await turn()
  const { metadata } = object
  if (!metadata.generateName || metadata.name) return createNamed(deps, context, object, request)
  for (let attempt = 1; ; attempt++) {
    // Each attempt gets its own copy: a failed attempt may have changed the object.
    const copy = deepCopy(object)
    copy.metadata.name = `${metadata.generateName.slice(0, 58)}${randomName(deps.random)}`
    try {
      return await createNamed(deps, context, copy, request)
    } catch (error) {
      const collided = error instanceof StatusError && error.reason === 'AlreadyExists'
      if (!collided) throw error
      if (attempt < generateNameTries) continue
      throw new StatusError('AlreadyExists', `${error.message}, the server was not able to generate a unique name for the object`, {
        details: { ...error.details, retryAfterSeconds: 1 },
        cause: error,
      })
    }
  }
}

async function createNamed(deps: WriterDeps, context: WriteContext, served: KubeObject, { options, authorize }: CreateRequest): Promise<CacheEntry> {
  const { stored } = context.served
  const { strategy } = stored
  const isLarge = isLargeObject(context.request?.bodyBytes ?? 0)
  const object = context.served.toStrategy(served)
  const metadata = fillSystemFields(deps, object)
  if (strategy.generation !== false) metadata.generation = 1
  const input = { obj: object, path: rootPath, context: strategyContext(deps, context) }
  strategy.prepareForCreate?.(input)
  // Most kinds have no hook and need no await.
  const reservation = stored.hooks?.beforeCreate && (await stored.hooks.beforeCreate(object, context.dryRun))
  let isStored = false
  try {
    const ofMetadata = limitedFaults((root) =>
      validateObjectMeta(metadata, stored.namespaced, strategy.validateName ?? nameIsDnsSubdomain, root.child('metadata')),
    )
    if (isLarge) await turn()
    const validating = inFewSteps(compilingInSteps(() => limitedFaults((path) => strategy.validate?.({ ...input, path }) ?? [])))
    const ofKind = validating instanceof Promise ? await validating : validating
    const errors = ofMetadata.length === 0 ? ofKind : [...ofMetadata, ...ofKind]
    throwIfInvalid(context, metadata.name ?? '', errors)
    if (isLarge) await turn()
    if (stored.hooks?.checkRights) await checkRights(deps, context, metadata.name ?? '', object)
    for (const warning of strategy.warnings?.(input) ?? []) context.warn(warning)
    strategy.canonicalize?.(object)
    if (isLarge) await turn()
    if (authorize) await authorize()
    await deps.admission.validate(attributesOf(context, 'CREATE', metadata.name ?? '', object, undefined, options))
    if (isLarge) await turn()
    const entry = await store(deps, context, object)
    isStored = !context.dryRun
    return entry
  } finally {
    if (reservation) await reservation.settle(isStored)
  }
}

async function store(deps: WriterDeps, context: WriteContext, object: KubeObject): Promise<CacheEntry> {
  const { stored } = context.served
  const name = object.metadata.name ?? ''
  const key = keyFor(stored, object.metadata.namespace ?? '', name)
  if (context.dryRun) {
    const existing = await deps.storage.read(stored, key)
    if (existing) throw existsError(context, existing, name)
    return transientEntry(key, await context.served.toStored(object))
  }
  const converting = context.served.toStored(object)
  const converted = converting instanceof Promise ? await converting : converting
  const trace = context.request?.trace
  trace?.creating(stored.group, stored.resource, object.metadata)
  const entry = await notingStoreLatency(deps, context, () => deps.storage.put(stored, key, converted, undefined, trace))
  if (entry) return entry
  // An unreadable object exists, too.
  throw existsError(context, await deps.storage.read(stored, key).catch(() => undefined), name)
}

function existsError(context: WriteContext, existing: CacheEntry | undefined, name: string): StatusError {
  const error = alreadyExists(context.served, name)
  if (!existing?.object.metadata.deletionTimestamp) return error
  return new StatusError('AlreadyExists', `object is being deleted: ${error.message}`, { details: error.details ?? {} })
}

function fillSystemFields(deps: WriterDeps, object: KubeObject): KubeObject['metadata'] {
  object.metadata = newSystemMetadata(object.metadata, { uid: randomUid(deps.random), creationTimestamp: formatTime(deps.clock.now()) })
  return object.metadata
}

/** Upstream: rest.EnsureObjectNamespaceMatchesRequestNamespace. */
export function ensureNamespace(context: WriteContext, object: KubeObject): void {
  const { namespace } = context
  const own = object.metadata.namespace ?? ''
  if (own === namespace) return
  if (own === '' && namespace !== '') {
    object.metadata.namespace = namespace
    return
  }
  if (namespace === '') {
    // The namespace of a cluster-scoped object is dropped silently; one that is named in the path must match.
    if (!context.served.namespaced) {
      delete object.metadata.namespace
      return
    }
    throw badRequest(`the namespace of the object (${own}) cannot be determined from the request`)
  }
  throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
}
