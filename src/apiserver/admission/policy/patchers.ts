/**
 * The two ways in which a policy changes an object (L3): an apply configuration, which is merged into it without owning anything, and a JSON
 * patch, which does nothing when one of its tests fails.
 * Upstream: apiserver/pkg/admission/plugin/policy/mutating/patch/{smd,json_patch}.go (v1.36).
 */
import { applyConfigurationOf, jsonPatchOf } from '#api/cel/mutation'
import { type Frozen, groupVersion, type KubeObject, parseGroupVersion } from '#api/machinery/meta'
import { isObject } from '#api/machinery/objects'
import { isStatus, StatusError } from '#api/machinery/status'
import { configurationFaults } from '#api/managedFields/faults'
import { mergeTyped } from '#api/managedFields/merge'
import { memberSchema, shapeOf } from '#api/managedFields/typed'
import { applyJsonPatch } from '#api/patch/jsonPatch'
import { schemaFor } from '#api/schema/builtIn'
import { withNils } from '#api/schema/nils'
import type { Schema } from '#api/schema/schema'
import { EvaluationError, type Value } from '#cel/values'
import type { AdmissionAttributes } from '../admission.ts'
import { decodeChanged } from '../matching/decodeChanged.ts'

/** The error of a failed mutation. */
export class MutationFault extends Error {}

/** The object patched by `value`, the result of a mutation's expression; the same object if nothing changes. @throws MutationFault, StatusError */
export function patchedBy(patchType: string, value: Value, object: Frozen<KubeObject>, attributes: AdmissionAttributes): KubeObject | Frozen<KubeObject> {
  return patchType === 'JSONPatch' ? byJsonPatch(value, object, attributes) : byConfiguration(value, object, attributes)
}

function byJsonPatch(value: Value, object: Frozen<KubeObject>, attributes: AdmissionAttributes): KubeObject | Frozen<KubeObject> {
  const operations = unwrapped(() => jsonPatchOf(value))
  let changed: unknown
  try {
    changed = applyJsonPatch(withNils(object), operations)
  } catch (error) {
    const why = isStatus(error) && error.cause instanceof Error ? error.cause.message : (error as Error).message
    if (why.startsWith('testing value ')) return object
    throw new MutationFault(`JSON Patch: ${why}`)
  }
  return decodeChanged(changed, attributes, object.apiVersion)
}

function byConfiguration(value: Value, object: Frozen<KubeObject>, attributes: AdmissionAttributes): KubeObject {
  const made = unwrapped(() => applyConfigurationOf(value)) as Record<string, unknown>
  const { apiVersion, kind } = object
  const patch = { ...made, apiVersion, kind }
  const schema = schemaOf(attributes, apiVersion, kind)
  const faults = [...undeclared(patch, attributes, apiVersion), ...configurationFaults(patch, schema)]
  if (faults.length > 0) {
    const text = faults.length === 1 ? faults[0] : `errors:\n${faults.map((fault) => `  ${fault}`).join('\n')}`
    throw new MutationFault(`error applying patch: failed to convert patch object to typed object: ${text}`)
  }
  const atomics = atomicsOf(patch, schema, '')
  if (atomics.length > 0)
    throw new MutationFault(`error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ${atomics.join(', ')}`)
  return decodeChanged(mergeTyped(object, patch, schema), attributes, apiVersion)
}

function unwrapped<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (error instanceof EvaluationError) throw new MutationFault(`type mismatch: ${error.message}`)
    throw error
  }
}

function schemaOf({ forms }: AdmissionAttributes, apiVersion: string, kind: string): Schema {
  const { group, version } = parseGroupVersion(apiVersion)
  const schema = forms ? forms.schemaOf(apiVersion) : schemaFor(group, version, kind)
  if (schema) return schema
  const late = 'There can be a delay between when CustomResourceDefinitions are created and when they are available.'
  throw new StatusError('ServiceUnavailable', `Resource kind ${groupVersion({ group, version })}, Kind=${kind} not found. ${late}`)
}

function undeclared(patch: object, { forms }: AdmissionAttributes, apiVersion: string): string[] {
  try {
    return (forms?.unknownFields(patch, apiVersion) ?? []).map((path) => `.${path}: field not declared in schema`)
  } catch (error) {
    return [(error as Error).message]
  }
}

/** Paths of atomic lists and objects, which an apply configuration must not set: it would remove all elements that it does not name. */
function atomicsOf(value: unknown, schema: Schema | undefined, path: string): string[] {
  if (Array.isArray(value)) {
    const own = shapeOf(value, schema) === 'leaf' ? [path] : []
    return [...own, ...value.flatMap((item, i) => atomicsOf(item, schema?.element, `${path}[${i}]`))]
  }
  if (!isObject(value)) return []
  const own = shapeOf(value, schema) === 'leaf' ? [path] : []
  return [...own, ...Object.entries(value).flatMap(([name, member]) => atomicsOf(member, memberSchema(schema, name), `${path}.${name}`))]
}
