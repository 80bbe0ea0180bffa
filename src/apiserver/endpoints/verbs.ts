/**
 * The verbs on stored objects (L3): get, list, watch, create, update, delete, deletecollection. Patch is patch.ts.
 * Upstream: apiserver/pkg/endpoints/handlers.
 */
import type { KubeObject } from '#api/machinery/meta'
import { badRequest, isStatus, notFound } from '#api/machinery/status'
import { schemaOfDefinition } from '#api/schema/builtIn'
import { deepCopy } from '#base/frozen'
import type { Answer } from '../answer.ts'
import { withWorkers } from '../fairLoop.ts'
import { truthy } from '../pipeline/requestInfo.ts'
import { type CacheEntry, prepareViews } from '../registry/cacheEntry.ts'
import { createObject } from '../registry/create.ts'
import { type DeleteRequest, deleteObject } from '../registry/deletion.ts'
import { listObjects } from '../registry/list.ts'
import { keyFor, type ServedResource } from '../registry/storedResource.ts'
import { updateObject } from '../registry/update.ts'
import { decodeBody, decodeValue, maxBodyBytes, type ParsedBody, parseBody, readyBody } from './body.ts'
import { expectedKind } from './expectedKind.ts'
import { checkListOptions } from './listOptions.ts'
import { createPresenter } from './present.ts'
import { invalidOption, type Scope, shown, writeContext } from './scope.ts'
import { integerOf, parseSelection } from './selectors.ts'
import { watchObjects } from './watch.ts'

/** GET of one object. */
export function getObject(scope: Scope): Promise<Answer> | Answer {
  const { deps, request, info, served } = scope
  const presenter = createPresenter(request, served, () => deps.clock.now())
  const { cacher } = deps.registry
  const revision = request.query.get('resourceVersion') ?? ''
  const wait = revision === '' ? cacher.waitUntilCurrent(request.cancellation) : cacher.waitFor(Number(revision) || 1, request.cancellation)
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
  const result = await listObjects({ cacher: deps.registry.cacher, store: deps.store }, served, listQuery(scope, info.namespace), request.cancellation)
  return presenter.list(result)
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
  const object = await decodeBody(scope, expectedKind(served))
  const result = await updateObject(deps.writer, context, {
    name: info.name,
    // With a resourceVersion the write fits one state only, so there is no second try that would need an untouched object.
    transform: () => (object.metadata.resourceVersion ? object : deepCopy<KubeObject>(object)),
  })
  return shown(scope, result.entry, (object) => presenter.object(object, result.created ? 201 : 200))
}

export async function deleteOne(scope: Scope): Promise<Answer> {
  const { deps, info, served } = scope
  const { options, request } = await deleteOptions(scope)
  const context = writeContext(scope, 'DeleteOptions', options)
  const result = await deleteObject(deps.writer, context, { ...request, name: info.name })
  if (!result.deleted || answersWithObject.has(`${served.group}/${served.resource}`))
    return shown(scope, result.entry, (object) => ({ type: 'object', status: 200, object }))
  return { type: 'value', status: 200, value: deletedStatus(served, result.entry.object.metadata) }
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
  const result = await listObjects({ cacher: deps.registry.cacher, store: deps.store }, served, listQuery(scope, info.namespace), request.cancellation)
  const context = writeContext(scope, 'DeleteOptions', options)
  const ended: (CacheEntry | undefined)[] = []
  await withWorkers(result.items, deletionWorkers, async (item, index) => {
    const { name = '', namespace = '' } = item.object.metadata
    try {
      ended[index] = (await deleteObject(deps.writer, { ...context, namespace }, { ...deletion, name })).entry
    } catch (error) {
      // Somebody else deleted it: that is what was asked for.
      if (!isStatus(error, 'NotFound')) throw error
    }
  })
  const deleted = ended.filter((entry) => entry !== undefined)
  await prepareViews(deleted, served.view, request.cancellation)
  const items = deleted.map((entry) => entry.view(served.view))
  return presenter.list({ ...result, items })
}

interface DeleteOptionsBody {
  gracePeriodSeconds?: number
  propagationPolicy?: string
  orphanDependents?: boolean
  preconditions?: { uid?: string; resourceVersion?: string }
  dryRun?: string[]
}

/** From the body where there is one, else from the query. */
async function deleteOptions(scope: Scope): Promise<{ options: DeleteOptionsBody; request: Omit<DeleteRequest, 'name'> }> {
  const { request } = scope
  const parsed = parseBody(await readyBody(scope, await request.readBody(maxBodyBytes)), false)
  const options = parsed.value === undefined || parsed.value === null ? optionsOfQuery(request.query) : decodeOptions(scope, parsed)
  if (typeof parsed.value === 'object' && parsed.value !== null) request.audit?.requestObject(parsed.value)
  if (request.query.has('dryRun') && !options.dryRun?.length) options.dryRun = request.query.getAll('dryRun')
  const { gracePeriodSeconds, propagationPolicy, orphanDependents, preconditions } = options
  if (propagationPolicy !== undefined && !isPropagationPolicy(propagationPolicy)) {
    const body = `Unsupported value: ${JSON.stringify(propagationPolicy)}: supported values: "Foreground", "Background", "Orphan", "nil"`
    throw invalidOption('DeleteOptions', 'propagationPolicy', 'FieldValueNotSupported', body)
  }
  if (propagationPolicy !== undefined && orphanDependents !== undefined) {
    const body = `Invalid value: ${JSON.stringify(propagationPolicy)}: orphanDependents and deletionPropagation cannot be both set`
    throw invalidOption('DeleteOptions', 'propagationPolicy', 'FieldValueInvalid', body)
  }
  // A negative period means the kind's least one, as upstream.
  const grace = gracePeriodSeconds !== undefined && gracePeriodSeconds < 0 ? 1 : gracePeriodSeconds
  return { options, request: { gracePeriodSeconds: grace, propagationPolicy, orphanDependents, preconditions, options: { ...options } } }
}

function isPropagationPolicy(text: string): text is 'Orphan' | 'Background' | 'Foreground' {
  return text === 'Orphan' || text === 'Background' || text === 'Foreground'
}

function decodeOptions(scope: Scope, parsed: ParsedBody): DeleteOptionsBody {
  const value = parsed.value as { apiVersion?: string; kind?: string }
  // DeleteOptions exists in every group-version; clients send the group's, v1 or meta.k8s.io/v1.
  if (typeof value === 'object' && value.kind !== undefined && value.kind !== 'DeleteOptions') {
    throw badRequest(`expected DeleteOptions, got ${value.kind}`)
  }
  const expected = { group: '', version: 'v1', kind: 'DeleteOptions', schema: schemaOfDefinition('io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions') }
  return decodeValue(scope.request, { value: { ...value, apiVersion: 'v1' }, duplicates: parsed.duplicates }, expected, 'Ignore') as DeleteOptionsBody
}

function optionsOfQuery(query: URLSearchParams): DeleteOptionsBody {
  const grace = query.get('gracePeriodSeconds')
  const policy = query.get('propagationPolicy')
  const orphan = query.get('orphanDependents')
  return {
    ...(grace === null ? {} : { gracePeriodSeconds: Number(grace) }),
    ...(policy === null ? {} : { propagationPolicy: policy }),
    ...(orphan === null ? {} : { orphanDependents: truthy(orphan) }),
  }
}
