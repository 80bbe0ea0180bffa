/**
 * PATCH in its four forms (L3): JSON patch, merge patch, strategic merge patch, server-side apply.
 * Upstream: apiserver/pkg/endpoints/handlers/patch.go.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { applyJsonPatch, parseJsonPatch } from '#api/machinery/patch/jsonPatch'
import { applyMergePatch } from '#api/machinery/patch/mergePatch'
import { applyStrategicMergePatch } from '#api/machinery/patch/strategicMerge'
import { badRequest, notFound } from '#api/machinery/status'
import { deepCopy } from '#base/frozen'
import type { Answer } from '../answer.ts'
import { updateObject } from '../registry/update.ts'
import type { RequestBody } from '../request.ts'
import { applyConfiguration } from './apply.ts'
import { decodeValue, fieldValidationOf, maxBodyBytes, mediaTypeOf, parseBody, unsupportedMediaType } from './body.ts'
import { applyPatchType, jsonPatchType, mergePatchType, patchTypesOf } from './patchTypes.ts'
import { createPresenter } from './present.ts'
import { expectedKind, invalidOption, type Scope, shown, writeContext } from './scope.ts'

export async function patch(scope: Scope): Promise<Answer> {
  const { deps, request, info, served } = scope
  const contentType = request.headers['content-type']
  const patchType = mediaTypeOf(typeof contentType === 'string' ? contentType : '')
  const accepted = patchTypesOf(served)
  if (!accepted.includes(patchType)) throw unsupportedMediaType(accepted)
  const presenter = createPresenter(request, served, () => deps.clock.now())
  const body = await request.readBody(maxBodyBytes)
  const result = patchType === applyPatchType ? await applyConfiguration(scope, body) : await plainPatch(scope, patchType, body)
  return shown(scope, result.entry, (object) => presenter.object(object, result.created ? 201 : 200))

  function plainPatch(_: Scope, type: string, raw: RequestBody) {
    if (request.query.has('force')) {
      throw invalidOption('PatchOptions', 'force', 'FieldValueForbidden', 'Forbidden: may not be specified for non-apply patch')
    }
    const validation = fieldValidationOf(request)
    const apply = patcher(scope, type, raw)
    const context = writeContext(scope, 'PatchOptions')
    return updateObject(deps.writer, context, {
      name: info.name,
      transform: (current) => {
        if (!current) throw notFound(served, info.name)
        const patched = deepCopy(apply(current))
        return decodeValue(request, { value: patched, duplicates: [] }, expectedKind(served), validation)
      },
    })
  }
}

function patcher(scope: Scope, type: string, raw: RequestBody): (current: Frozen<KubeObject>) => unknown {
  const value = patchValue(raw)
  if (type === jsonPatchType) {
    const operations = parseJsonPatch(value)
    return (current) => applyJsonPatch(current, operations)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw badRequest('error decoding patch: the patch must be a JSON object')
  if (type === mergePatchType) return (current) => applyMergePatch(current, value)
  return (current) => applyStrategicMergePatch(current, value, scope.served.schema)
}

/** Patches are JSON whatever their media type is called. */
function patchValue(raw: RequestBody): unknown {
  return parseBody(raw.type === 'value' ? raw : { ...raw, contentType: 'application/json' }, false).value
}
