/**
 * The scale subresource (L3): autoscaling/v1 Scale as a view of spec.replicas, for every kind whose strategy has the path.
 * Upstream: ScaleREST of the apps storages, apiserver's generic scale handlers.
 */
import type { Scale } from '#api/gen/types/autoscaling.v1'
import { scaleColumns } from '#api/kinds/autoscaling/scale'
import type { Column } from '#api/kinds/defineKind'
import { FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { setOwn } from '#api/machinery/objects'
import { badRequest, conflict, internalError, notFound, optimisticLockMessage } from '#api/machinery/status'
import { apply } from '#api/managedFields/apply'
import { type ReplicasPaths, toParentEntries, toScaleEntries } from '#api/managedFields/scaleEntries'
import { trackUpdate } from '#api/managedFields/trackUpdate'
import { applyJsonPatch, parseJsonPatch } from '#api/patch/jsonPatch'
import { applyMergePatch } from '#api/patch/mergePatch'
import { schemaFor } from '#api/schema/builtIn'
import { ownValue } from '#base/bareMap'
import { deepCopy } from '#base/frozen'
import type { Answer } from '../../core/answer.ts'
import { decodeBody, decodeValue, fieldValidationOf, maxBodyBytes, mediaTypeOf, parseBody, readyBody, unsupportedMediaType, yamlType } from '../../core/body.ts'
import { type AnswerForm, negotiate } from '../../core/negotiate.ts'
import type { RequestBody } from '../../core/request.ts'
import { truthy } from '../../core/requestInfo.ts'
import { admit } from '../../registry/admit.ts'
import { keyFor } from '../../registry/storedResource.ts'
import { updateObject } from '../../registry/update.ts'
import { attributesOf } from '../../registry/writer.ts'
import { readConfiguration } from '../apply.ts'
import { applyPatchType, jsonPatchType, patchTypesOf } from '../patchTypes.ts'
import { presentOne } from '../present.ts'
import { methodNotAllowed } from '../router.ts'
import { type Scope, viewOf, writeContext } from '../scope.ts'

export const scaleHandlers = { get: getScale, update: updateScale, patch: patchScale }

function scaleKind() {
  const schema = schemaFor('autoscaling', 'v1', 'Scale')
  if (!schema) throw new Error('no schema for Scale')
  return { group: 'autoscaling', version: 'v1', kind: 'Scale', schema }
}

async function getScale(scope: Scope): Promise<Answer> {
  const { deps, request, info, served } = scope
  const wait = deps.registry.cacher.waitUntilCurrent(request.cancellation)
  if (wait) await wait
  const entry = served.stored.cache.get(keyFor(served, info.namespace, info.name))
  if (!entry) throw notFound(served, info.name)
  const { object } = await viewOf(scope, entry)
  const { required, replicas } = strategyOf(scope)
  if (required && valueAt(object, replicas) === undefined) throw internalError(new Error(`the spec replicas field ${JSON.stringify(replicas)} does not exist`))
  return presented(scope, scaleOf(scope, object), formOf(scope))
}

function formOf({ request }: Scope): AnswerForm {
  return negotiate(request, ['Table', 'PartialObjectMetadata'])
}

function presented({ deps, request }: Scope, scale: Scale, form: AnswerForm): Answer {
  const columns = scaleColumns as unknown as readonly Column<KubeObject>[]
  return presentOne(request, form, scale as unknown as KubeObject, { columns }, deps.clock.now())
}

async function updateScale(scope: Scope): Promise<Answer> {
  const scale = (await decodeBody(scope, scaleKind())) as unknown as Scale
  return writeScale(
    scope,
    'UpdateOptions',
    updated(scope, 'UpdateOptions', () => scale),
  )
}

async function patchScale(scope: Scope): Promise<Answer> {
  const { request, served } = scope
  const contentType = request.headers['content-type']
  const type = mediaTypeOf(typeof contentType === 'string' ? contentType : '')
  const accepted = patchTypesOf(served)
  if (!accepted.includes(type)) throw unsupportedMediaType(accepted)
  const body = await request.readBody(maxBodyBytes)
  if (type === applyPatchType) return writeScale(scope, 'PatchOptions', applied(scope, await readyBody(scope, body, yamlType)))
  const { value } = parseBody(body.type === 'value' ? body : { ...body, contentType: 'application/json' }, false)
  const isJson = type === jsonPatchType
  const patch = (current: Scale) => {
    // Scale has no lists with merge keys, so the strategic form means the same as the plain one.
    const patched = isJson ? applyJsonPatch(current, parseJsonPatch(value)) : applyMergePatch(current, value)
    return decodeValue(request, { value: deepCopy(patched), duplicates: [] }, scaleKind(), fieldValidationOf(request)) as unknown as Scale
  }
  return writeScale(scope, 'PatchOptions', updated(scope, 'PatchOptions', patch))
}

/** A write that is no apply: its manager owns the replicas if it changes them. */
function updated(scope: Scope, options: string, change: (current: Scale) => Scale): (current: Scale) => Scale {
  return (current) => {
    const scale = deepCopy<Scale>(change(current))
    trackUpdate({ ...ownership(scope, options), old: current as unknown as KubeObject, updated: scale as unknown as KubeObject })
    return scale
  }
}

function applied(scope: Scope, body: RequestBody): (current: Scale) => Scale {
  const { request } = scope
  const configuration = readConfiguration(scope, body, scaleKind())
  const force = truthy(request.query.get('force'))
  return (current) => apply({ ...ownership(scope, 'PatchOptions'), ...configuration, live: current as unknown as KubeObject, force }) as unknown as Scale
}

function ownership(scope: Scope, options: string) {
  const { fieldManager } = writeContext(scope, options)
  return { schema: scaleKind().schema, manager: fieldManager, apiVersion: 'autoscaling/v1', subresource: 'scale', nowMs: scope.deps.clock.now() }
}

/** How each version of the resource names its replicas. */
function replicasPaths({ deps, served: { stored } }: Scope): ReplicasPaths {
  const versions = deps.registry.all().filter(({ group, resource }) => group === stored.group && resource === stored.resource)
  return new Map(versions.map((version) => [version.apiVersion, version.stored.strategy.scale?.replicas]))
}

async function writeScale(scope: Scope, options: string, wanted: (current: Scale) => Scale): Promise<Answer> {
  const { deps, info, served } = scope
  const form = formOf(scope)
  const path = strategyOf(scope)
    .replicas.split('.')
    .filter((part) => part !== '')
  const paths = replicasPaths(scope)
  const asked = writeContext(scope, options)
  const admitted = { context: { ...asked, kind: scaleKind() }, view: (object: Frozen<KubeObject>) => scaleOf(scope, object) as unknown as KubeObject }
  const result = await updateObject(
    deps.writer,
    { ...asked, subresource: '', managedFieldsDone: true },
    {
      name: info.name,
      admitted,
      transform: async (current) => {
        if (!current) throw notFound(served, info.name)
        const { managedFields } = current.metadata
        const before = scaleOf(scope, current)
        const scale = wanted({ ...before, metadata: { ...before.metadata, managedFields: toScaleEntries(managedFields, paths) } } as Scale)
        const seen = attributesOf(admitted.context, 'UPDATE', info.name, scale as unknown as KubeObject, admitted.view(current) as Frozen<KubeObject>)
        await admit(deps.writer.admission, seen)
        check(scope, scale, current)
        const object = deepCopy<KubeObject>(current)
        setPath(object as unknown as Record<string, unknown>, path, scale.spec?.replicas ?? 0)
        object.metadata.managedFields = toParentEntries(managedFields, scale.metadata?.managedFields, paths, served.apiVersion)
        return object
      },
    },
  )
  return presented(scope, scaleOf(scope, (await viewOf(scope, result.entry)).object), form)
}

function check(scope: Scope, scale: Scale, current: Frozen<KubeObject>): void {
  const { info, served } = scope
  const { metadata } = scale
  if (metadata?.name && metadata.name !== info.name)
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${info.name})`)
  const { resourceVersion, uid } = metadata ?? {}
  if ((resourceVersion && resourceVersion !== current.metadata.resourceVersion) || (uid && uid !== current.metadata.uid)) {
    throw conflict(served, info.name, optimisticLockMessage)
  }
  const replicas = scale.spec?.replicas ?? 0
  if (replicas < 0) {
    const error = fieldError.invalid(FieldPath.of('spec', 'replicas'), replicas, 'must be greater than or equal to 0')
    throw invalid({ group: 'autoscaling', kind: 'Scale' }, info.name, [error])
  }
}

function scaleOf(scope: Scope, object: Frozen<KubeObject>): Scale {
  const strategy = strategyOf(scope)
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata
  const selector = strategy.selector(object)
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp } as Scale['metadata'],
    spec: { replicas: numberAt(object, strategy.replicas) },
    status: { replicas: numberAt(object, strategy.statusReplicas), ...(selector ? { selector } : {}) },
  } as Scale
}

function strategyOf(scope: Scope) {
  const { scale } = scope.served.stored.strategy
  if (!scale) throw methodNotAllowed()
  return scale
}

function numberAt(object: unknown, path: string): number {
  const value = valueAt(object, path)
  return typeof value === 'number' ? value : 0
}

function valueAt(object: unknown, path: string): unknown {
  let value: unknown = object
  for (const part of path.split('.')) if (part !== '') value = ownValue((value ?? undefined) as Record<string, unknown> | undefined, part)
  return value
}

function setPath(object: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let at = object
  for (const part of path.slice(0, -1)) {
    const below = ownValue(at, part) ?? {}
    setOwn(at, part, below)
    at = below as Record<string, unknown>
  }
  setOwn(at, path.at(-1) ?? '', value)
}
