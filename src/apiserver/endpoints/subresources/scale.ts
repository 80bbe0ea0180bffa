/**
 * The scale subresource (L3): autoscaling/v1 Scale as a view of spec.replicas, for every kind whose strategy says where they are.
 * Upstream: ScaleREST of the apps storages, apiserver's generic scale handlers.
 */
import type { Scale } from '#api/gen/types/autoscaling.v1'
import { FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { applyJsonPatch, parseJsonPatch } from '#api/machinery/patch/jsonPatch'
import { applyMergePatch } from '#api/machinery/patch/mergePatch'
import { badRequest, conflict, internalError, notFound, optimisticLockMessage } from '#api/machinery/status'
import { schemaFor } from '#api/schema/builtIn'
import { deepCopy } from '#base/frozen'
import type { Answer } from '../../answer.ts'
import { keyFor } from '../../registry/storedResource.ts'
import { updateObject } from '../../registry/update.ts'
import { decodeBody, decodeValue, fieldValidationOf, maxBodyBytes, mediaTypeOf, parseBody, unsupportedMediaType } from '../body.ts'
import { encodingOf, negotiate } from '../negotiate.ts'
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
  return { type: 'value', status: 200, value: scaleOf(scope, object), ...encodingOf(negotiate(scope.request)) }
}

async function updateScale(scope: Scope): Promise<Answer> {
  const scale = (await decodeBody(scope.request, scaleKind())) as unknown as Scale
  return writeScale(scope, () => scale)
}

async function patchScale(scope: Scope): Promise<Answer> {
  const { request } = scope
  const contentType = request.headers['content-type']
  const type = mediaTypeOf(typeof contentType === 'string' ? contentType : '')
  const body = await request.readBody(maxBodyBytes)
  const { value } = parseBody(body.type === 'value' ? body : { ...body, contentType: 'application/json' }, false)
  const json = type === 'application/json-patch+json'
  if (!json && type !== 'application/merge-patch+json' && type !== 'application/strategic-merge-patch+json') {
    throw unsupportedMediaType(['application/json-patch+json', 'application/merge-patch+json', 'application/strategic-merge-patch+json'])
  }
  return writeScale(scope, (current) => {
    // Scale has no lists with merge keys, so the strategic form means the same as the plain one.
    const patched = json ? applyJsonPatch(current, parseJsonPatch(value)) : applyMergePatch(current, value)
    return decodeValue(request, { value: deepCopy(patched), duplicates: [] }, scaleKind(), fieldValidationOf(request)) as unknown as Scale
  })
}

async function writeScale(scope: Scope, wanted: (current: Scale) => Scale): Promise<Answer> {
  const { deps, info, served } = scope
  const form = negotiate(scope.request)
  const path = strategyOf(scope)
    .replicas.split('.')
    .filter((part) => part !== '')
  const result = await updateObject(
    deps.writer,
    { ...writeContext(scope, 'UpdateOptions'), subresource: '' },
    {
      name: info.name,
      transform: (current) => {
        if (!current) throw notFound(served, info.name)
        const scale = wanted(scaleOf(scope, current))
        check(scope, scale, current)
        const object = deepCopy<KubeObject>(current)
        setPath(object as unknown as Record<string, unknown>, path, scale.spec?.replicas ?? 0)
        return object
      },
    },
  )
  return { type: 'value', status: 200, value: scaleOf(scope, (await viewOf(scope, result.entry)).object), ...encodingOf(form) }
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
  for (const part of path.split('.')) if (part !== '') value = (value as Record<string, unknown> | undefined | null)?.[part]
  return value
}

function setPath(object: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let at = object
  for (const part of path.slice(0, -1)) {
    at[part] ??= {}
    at = at[part] as Record<string, unknown>
  }
  at[path.at(-1) ?? ''] = value
}
