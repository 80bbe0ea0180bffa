/**
 * PATCH in its four forms (L3): JSON patch, merge patch, strategic merge patch, server-side apply.
 * Upstream: apiserver/pkg/endpoints/handlers/patch.go.
 */
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import { JsonSyntaxError } from '#api/machinery/json'
import { type Frozen, groupVersion, type KubeObject } from '#api/machinery/meta'
import { goPrint } from '#api/machinery/objects'
import { badRequest, isStatus, notFound } from '#api/machinery/status'
import { jsonPatchSteps, parseJsonPatch } from '#api/patch/jsonPatch'
import { applyMergePatch } from '#api/patch/mergePatch'
import { applyStrategicMergePatch } from '#api/patch/strategicMerge'
import { DecodeError } from '#api/schema/decode'
import { withNils } from '#api/schema/nils'
import { deepCopyInSteps } from '#base/frozen'
import type { Answer } from '../core/answer.ts'
import {
  decodeValue,
  type ExpectedKind,
  fieldValidationOf,
  maxBodyBytes,
  mediaTypeOf,
  parseBody,
  parseJsonBody,
  readyBody,
  unsupportedMediaType,
  yamlType,
} from '../core/body.ts'
import { inSteps, turn } from '../core/fairLoop.ts'
import type { ParsedBody, RequestBody } from '../core/request.ts'
import { expectedKind } from '../registry/expectedKind.ts'
import { updateObject } from '../registry/update.ts'
import { applyConfiguration } from './apply.ts'
import { keptByPatch } from './keptParts.ts'
import { applyPatchType, jsonPatchType, mergePatchType, patchTypesOf, strategicMergePatchType } from './patchTypes.ts'
import { createPresenter } from './present.ts'
import { invalidOption, type Scope, shown, writeContext } from './scope.ts'

export async function patch(scope: Scope): Promise<Answer> {
  const { deps, request, info, served } = scope
  const contentType = request.headers['content-type']
  const patchType = mediaTypeOf(typeof contentType === 'string' ? contentType : '')
  const accepted = patchTypesOf(served)
  if (!accepted.includes(patchType)) throw unsupportedMediaType(accepted)
  const presenter = createPresenter(request, served, () => deps.clock.now())
  const body = await request.readBody(maxBodyBytes)
  request.audit?.requestPatch(body)
  const result =
    patchType === applyPatchType ? await applyConfiguration(scope, await readyBody(scope, body, yamlType)) : await plainPatch(scope, patchType, body)
  return shown(scope, result.entry, (object) => presenter.object(object, result.created ? 201 : 200))

  function plainPatch(_: Scope, type: string, raw: RequestBody) {
    if (request.query.has('force')) {
      throw invalidOption('PatchOptions', 'force', 'FieldValueForbidden', 'Forbidden: may not be specified for non-apply patch')
    }
    const validation = fieldValidationOf(request)
    const patch = patchValue(raw, validation !== 'Ignore')
    const apply = patcher(scope, type, patch.value)
    const context = writeContext(scope, 'PatchOptions')
    return updateObject(deps.writer, context, {
      name: info.name,
      transform: async (current, isLarge) => {
        if (!current) throw notFound(served, info.name)
        const kept = type === jsonPatchType ? undefined : keptByPatch(scope, current, patch.value)
        const applied = apply((kept?.rest ?? current) as Frozen<KubeObject>)
        const patched = applied instanceof Promise ? await applied : applied
        if (isLarge) await turn()
        // What operations bring may be the patch's own.
        const value = type === jsonPatchType ? await inSteps(deepCopyInSteps(patched), true) : patched
        if (type === strategicMergePatchType) keepKind(value, expectedKind(served))
        if (isLarge) await turn()
        // The library that reads JSON patches is a lenient one.
        const duplicates = type === jsonPatchType ? [] : patch.duplicates
        const shownValue = () => (type === strategicMergePatchType ? goPrint(patch.value) : stringifyExactly(type === jsonPatchType ? patched : apply(current)))
        const object = whatPatchMade(type, shownValue, () => decodeValue(request, { value, duplicates }, expectedKind(served), validation, kept?.decoded))
        return kept ? kept.joined(object) : object
      },
    })
  }
}

/** Upstream converts the merged value to the type that is served, without a look at the kind and version that the patch names. */
function keepKind(value: unknown, { kind, ...version }: ExpectedKind): void {
  const object = value as Partial<KubeObject>
  if (typeof object.kind === 'string') object.kind = kind
  if (typeof object.apiVersion === 'string') object.apiVersion = groupVersion(version)
}

/** What does not decode after a patch is the patch's fault: 422, not the 400 of a body. */
function whatPatchMade(type: string, shownValue: () => string, decode: () => KubeObject): KubeObject {
  try {
    return decode()
  } catch (error) {
    if (!isStatus(error, 'BadRequest') || !(error.cause instanceof Error)) throw error
    const { cause } = error
    const why = type === strategicMergePatchType && cause instanceof DecodeError ? cause.converterMessage : cause.message
    throw invalid({ group: '', kind: '' }, '', [fieldError.invalid(FieldPath.of('patch'), shownValue(), why)])
  }
}

function patcher(scope: Scope, type: string, value: unknown): (current: Frozen<KubeObject>) => unknown {
  if (type === jsonPatchType) {
    const operations = parseJsonPatch(value)
    return (current) => inSteps(jsonPatchSteps(withNils(current), operations), true)
  }
  if (typeof value !== 'object' || Array.isArray(value)) {
    const text = `json: cannot unmarshal ${goKind(value)} into Go value of type map[string]interface {}`
    throw badRequest(type === mergePatchType ? `error decoding patch: ${text}` : text)
  }
  if (type === mergePatchType) return (current) => applyMergePatch(current, value)
  return (current) => applyStrategicMergePatch(current, value ?? {}, scope.served.schema)
}

function goKind(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'bigint') return 'number'
  return typeof value === 'boolean' ? 'bool' : typeof value
}

/** Patches are JSON whatever their media type is called. */
function patchValue(raw: RequestBody, duplicates: boolean): ParsedBody {
  if (raw.type === 'value') return parseBody(raw, false)
  try {
    return parseJsonBody(raw.bytes, duplicates)
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw badRequest('invalid JSON patch')
    throw error
  }
}
