/**
 * What mutating admission policies add to CEL (L1): `Object{spec: Object.spec{replicas: 3}}`, whose types are named after the path of
 * the field, `JSONPatch{op: "add", path: "/x", value: 1}`, and jsonpatch.escapeKey. What a patch's expression made becomes JSON by toJson.
 * Upstream: apiserver/pkg/cel/mutation (typeresolver.go, jsonpatch.go, dynamic/objects.go, v1.36).
 */
import type { Environment } from '#cel/environment'
import { toJson } from '#cel/json'
import { dynType, objectType, openObjectType, stringType } from '#cel/types'
import type { Value } from '#cel/values'
import { ConstructedObject, EvaluationError, ListValue, MapValue } from '#cel/values'
import type { JsonPatchOperation } from '../patch/jsonPatch.ts'
import { jsonPatchLibrary } from './collections.ts'
import { kubernetesEnvironment } from './environment.ts'

const rootName = 'Object'

/** The type of a JSONPatch mutation's expression is a list of these. */
export const jsonPatchType = objectType('JSONPatch', { op: stringType, path: stringType, from: stringType, value: dynType })
/** The type of an ApplyConfiguration mutation's expression. */
export const applyConfigurationType = openObjectType(rootName)

/** Kubernetes' environment with these types; variables are the caller's to add. */
export const mutationEnvironment: Environment = kubernetesEnvironment.extend({
  libraries: [jsonPatchLibrary],
  types: [jsonPatchType],
  resolveType: (name) => (name === rootName || name.startsWith(`${rootName}.`) ? openObjectType(name) : undefined),
})

/** The object that an expression has made, as JSON. @throws EvaluationError when a part's type is not named after its place. */
export function applyConfigurationOf(value: Value): unknown {
  checkTypeNames(value, rootName)
  return toJson(value)
}

/** The operations that a JSONPatch mutation's expression has made. @throws EvaluationError as applyConfigurationOf */
export function jsonPatchOf(value: Value): JsonPatchOperation[] {
  if (!(value instanceof ListValue)) throw new EvaluationError('type mismatch: JSONPatchType.expression should evaluate to array')
  return Array.from({ length: value.size }, (_, i) => operationOf(value.at(i)))
}

function operationOf(value: Value): JsonPatchOperation {
  if (!(value instanceof ConstructedObject)) throw new EvaluationError('type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch')
  const text = (field: string): string => (value.get(field) as string | undefined) ?? ''
  const [from, made] = [text('from'), value.get('value')]
  // Objects may be made for any place: only what is below them must fit.
  if (made instanceof ConstructedObject) checkTypeNames(made, made.typeName)
  return { op: text('op'), path: text('path'), ...(from ? { from } : {}), ...(made === undefined ? {} : { value: toJson(made) }) }
}

function checkTypeNames(value: Value, path: string): void {
  if (value instanceof ConstructedObject) {
    if (value.typeName !== path) {
      const [found, wanted] = [JSON.stringify(value.typeName), JSON.stringify(path)]
      throw new EvaluationError(`unexpected type name ${found}, expected ${wanted}, which matches field name path from root Object type`)
    }
    for (const name of value.fieldNames()) checkTypeNames(value.get(name)!, `${path}.${name}`)
  } else if (value instanceof ListValue) for (let i = 0; i < value.size; i++) checkTypeNames(value.at(i), path)
  else if (value instanceof MapValue) for (const key of value.keys()) checkTypeNames(value.get(key)!, path)
}
