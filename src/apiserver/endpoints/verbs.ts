/**
 * The verbs on stored objects (L3): get, list, watch, create, update, delete, deletecollection. Patch is patch.ts.
 * Upstream: apiserver/pkg/endpoints/handlers.
 */
import type { KubeObject } from '#api/machinery/meta'
import { conflict, isStatus, notFound, optimisticLockMessage } from '#api/machinery/status'
import { deepCopy } from '#base/frozen'
import type { Answer } from '../core/answer.ts'
import { decodeBody } from '../core/body.ts'
import { withWorkers } from '../core/fairLoop.ts'
import { type CacheEntry, prepareViews } from '../core/watch/cacheEntry.ts'
import { createObject } from '../registry/create.ts'
import { deleteObject } from '../registry/deletion.ts'
import { expectedKind } from '../registry/expectedKind.ts'
import { listObjects, parseRevision } from '../registry/list.ts'
import { keyFor, type ServedResource } from '../registry/storedResource.ts'
import { latencyMeasure } from '../registry/storeLatency.ts'
import { deleteUnreadable } from '../registry/unsafeDeletion.ts'
import { updateObject } from '../registry/update.ts'
import { deleteOptions, refuseUnsafe } from './deleteOptions.ts'
import { keptByCaller } from './keptParts.ts'
import { checkListOptions } from './listOptions.ts'
import { createPresenter } from './present.ts'
import { type Scope, shown, writeContext } from './scope.ts'
import { integerOf, parseSelection } from './selectors.ts'
import { watchObjects } from './watch.ts'

/** GET of one object. */
export function getObject(scope: Scope): Promise<Answer> | Answer {
  const { deps, request, info, served } = scope
  const presenter = createPresenter(request, served, () => deps.clock.now())
  const { cacher } = deps.registry
  const revision = request.query.get('resourceVersion') ?? ''
  const wait = revision === '' ? cacher.waitUntilCurrent(request.cancellation) : cacher.waitFor(parseRevision(revision) || 1, request.cancellation)
  const answer = () => {
    const entry = served.stored.cache.get(keyFor(served, info.namespace, info.name))
    if (!entry) throw notFound(served, info.name)
    return shown(scope, entry, (object) => presenter.object(object, 200))
  }
  return wait ? wait.then(answer) : answer()
}

export async function listOrWatch(scope: Scope): Promise<Answer> {
  if (scope.info.verb === 'watch') return watchObjects(scope)
  const { deps, request, info, served } = scope
  const presenter = createPresenter(request, served, () => deps.clock.now())
  const { cacher } = deps.registry
  const measure = latencyMeasure(deps.clock, request.audit)
  const result = await listObjects({ cacher, store: deps.store, measure }, served, listQuery(scope, info.namespace), request.cancellation)
  return measure('transform-response-object', () => presenter.list(result))
}

function listQuery(scope: Scope, namespace: string) {
  const { request, served } = scope
  const { query } = request
  checkListOptions(query)
  const revision = query.get('resourceVersion') ?? ''
  // Upstream's cache answers resourceVersion=0 in one piece whatever the limit; informers count on it.
  const asked = integerOf(query, 'limit')
  const limit = revision === '0' ? 0 : asked
  return {
    selection: parseSelection(served, namespace, query.get('labelSelector') ?? '', query.get('fieldSelector') ?? ''),
    limit: Number.isSafeInteger(limit) && limit > 0 ? limit : 0,
    continue: query.get('continue') ?? '',
    resourceVersion: revision,
    resourceVersionMatch: query.get('resourceVersionMatch') ?? '',
  }
}

export async function create(scope: Scope): Promise<Answer> {
  const { deps, request, served } = scope
  const presenter = createPresenter(request, served, () => deps.clock.now())
  const context = writeContext(scope, 'CreateOptions')
  const object = await decodeBody(scope, expectedKind(served))
  const entry = await createObject(deps.writer, context, object)
  return shown(scope, entry, (object) => presenter.object(object, 201))
}

/** PUT: replaces an object, or creates it where its kind allows that. */
export async function update(scope: Scope): Promise<Answer> {
  const { deps, request, info, served } = scope
  const presenter = createPresenter(request, served, () => deps.clock.now())
  const context = writeContext(scope, 'UpdateOptions')
  const object = await decodeBody(scope, expectedKind(served), (value) => keptByCaller(scope, value))
  let isTaken = false
  const result = await updateObject(deps.writer, context, {
    name: info.name,
    transform(current) {
      if (!current || Number(object.metadata.resourceVersion ?? 0) === 0) return deepCopy<KubeObject>(object)
      // A write with a resourceVersion fits one state. The second try would compare the version that the first one has set: that of an equal write
      // of another server, if the cache took it for this one.
      if (isTaken) throw conflict(served, info.name, optimisticLockMessage)
      isTaken = true
      return object
    },
  })
  return shown(scope, result.entry, (object) => presenter.object(object, result.created ? 201 : 200))
}

/** DELETE of one object: as usual, or of one that cannot be read, where the options ask for it. */
export async function deleteOne(scope: Scope): Promise<Answer> {
  const { deps, info, served } = scope
  const { options, request } = await deleteOptions(scope)
  const context = writeContext(scope, 'DeleteOptions', options)
  if (options.ignoreStoreReadErrorWithClusterBreakingPotential) {
    scope.request.auditAnnotations = { ...scope.request.auditAnnotations, 'apiserver.k8s.io/unsafe-delete-ignore-read-error': '' }
    await deleteUnreadable(deps.writer, context, info.name)
    const details = { name: info.name, kind: served.kind }
    return { type: 'value', status: 200, value: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details, code: 200 } }
  }
  const result = await deleteObject(deps.writer, context, { ...request, name: info.name })
  if (!result.deleted || answersWithObject.has(`${served.group}/${served.resource}`))
    return shown(scope, result.entry, (object) => ({ type: 'object', status: 200, object }))
  return { type: 'value', status: 200, value: deletedStatus(served, { name: info.name, uid: result.uid }) }
}

/** Deleting one of these answers with what was deleted, the others with a Status. Upstream: ReturnDeletedObject of the storages. */
const answersWithObject: ReadonlySet<string> = new Set([
  '/persistentvolumeclaims',
  '/persistentvolumes',
  '/pods',
  '/podtemplates',
  '/resourcequotas',
  '/serviceaccounts',
  '/services',
  'storage.k8s.io/csidrivers',
  'storage.k8s.io/csinodes',
  'storage.k8s.io/csistoragecapacities',
  'storage.k8s.io/storageclasses',
  'storage.k8s.io/volumeattachments',
])

function deletedStatus(served: ServedResource, metadata: { readonly name?: string | undefined; readonly uid?: string | undefined }) {
  const details = { name: metadata.name, ...(served.group ? { group: served.group } : {}), kind: served.resource, uid: metadata.uid }
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }
}

/** How many deletions share a flush of the disk. */
const deletionWorkers = 32

/** Deletes everything that a list would show. */
export async function deleteCollection(scope: Scope): Promise<Answer> {
  const { deps, request, info, served } = scope
  const presenter = createPresenter(request, served, () => deps.clock.now())
  const { options, request: deletion } = await deleteOptions(scope)
  refuseUnsafe(options)
  const { cacher } = deps.registry
  const measure = latencyMeasure(deps.clock, request.audit)
  const result = await listObjects({ cacher, store: deps.store, measure }, served, listQuery(scope, info.namespace), request.cancellation)
  const context = writeContext(scope, 'DeleteOptions', options)
  const ended: (CacheEntry | undefined)[] = []
  await withWorkers(result.items, deletionWorkers, async (item, index) => {
    const { name = '', namespace = '' } = item.object.metadata
    try {
      ended[index] = (await deleteObject(deps.writer, { ...context, namespace }, { ...deletion, name })).entry
    } catch (error) {
      // Another client deleted it: the collection is as empty as requested.
      if (!isStatus(error, 'NotFound')) throw error
    }
  })
  const deleted = ended.filter((entry) => entry !== undefined)
  await prepareViews(deleted, served.view, request.cancellation)
  const items = deleted.map((entry) => entry.view(served.view))
  return presenter.list({ ...result, items })
}
