/**
 * The rules of one version of a custom resource (L3), as a strategy like those of built-in kinds.
 * Upstream: apiextensions-apiserver/pkg/registry/customresource (strategy.go, status_strategy.go, validator.go).
 */

import type { CustomResourceSubresourceScale, JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import type { RuleOutcome } from '#api/kinds/apiextensions/ruleEvaluation'
import type { CreateInput, KindStrategy, UpdateInput } from '#api/kinds/defineKind'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import { compileFirstOfJsonPath } from '#api/machinery/jsonPath'
import type { Frozen, KubeObject, Unstructured } from '#api/machinery/meta'
import { isQualifiedName } from '#api/machinery/names'
import { validateEmbeddedResources } from '#api/schema/embeddedResources'
import { validateListTypes } from '#api/schema/listTypes'
import type { Schema } from '#api/schema/schema'
import { compileValidationInSteps } from '#api/schema/structuralValidation'
import { ownValue } from '#base/bareMap'
import { deepCopy } from '#base/frozen'
import { columnsOf } from './columns.ts'
import type { Definition, DefinitionVersion } from './definitions.ts'

/** The version's x-kubernetes-validations rules. `old` is absent on creates. */
export type RuleValidation = (object: Frozen<KubeObject> | KubeObject, old: Frozen<KubeObject> | undefined) => RuleOutcome

/** Pauses while it compiles a large schema. */
export function* customStrategy(
  definition: Definition,
  version: DefinitionVersion,
  schema: Schema,
  rules: RuleValidation | undefined,
): Generator<undefined, KindStrategy> {
  const { group, names } = definition.spec
  const props = (version.schema?.openAPIV3Schema ?? {}) as JSONSchemaProps
  const { status, scale } = version.subresources ?? {}
  const validation = yield* compileValidationInSteps(props)
  const statusProps = props.properties?.status
  const statusValidation = statusProps && (yield* compileValidationInSteps(statusProps, 'status'))
  const finish = (errors: FieldError[], input: CreateInput<KubeObject>, old?: Frozen<KubeObject>) => [...errors, ...ruleFaults(rules, errors, input, old)]
  return {
    group,
    kind: names.kind,
    allowUnconditionalUpdate: false,
    columns: columnsOf(version.additionalPrinterColumns),
    generationCountsStatus: status === undefined,
    selectableFields: selectableFields(version),
    ...(scale ? { scale: scaleOf(scale) } : {}),
    prepareForCreate({ obj }) {
      if (status) delete (obj as Unstructured).status
    },
    validate: (input) => {
      const { obj } = input
      const embedded = validateEmbeddedResources(obj, schema)
      return finish(
        [...validation(obj), ...scaleSpecFaults(scale, obj), ...scaleStatusFaults(scale, obj), ...embedded, ...validateListTypes(obj, schema)],
        input,
      )
    },
    validateUpdate: (input) => {
      const { obj, old } = input
      const embedded = validateEmbeddedResources(obj, schema)
      const lists = listFaults(obj, old, schema)
      return finish([...validation(obj, old), ...scaleSpecFaults(scale, obj), ...scaleStatusFaults(scale, obj), ...embedded, ...lists], input, old)
    },
    warnings: ({ obj }, old) => finalizerWarnings(obj, old),
    ...(status
      ? {
          status: {
            resetFields: ['metadata', 'spec'],
            prepareForUpdate: keepAllButStatus,
            validateUpdate: (input: UpdateInput<KubeObject>) => {
              const { obj, old } = input
              const [value, before] = [(obj as Unstructured).status, (old as Frozen<Unstructured>).status]
              const faults = value === undefined || !statusValidation ? [] : statusValidation(value, before)
              return finish([...faults, ...scaleStatusFaults(scale, obj), ...listFaults(obj, old, schema)], input, old)
            },
          },
        }
      : {}),
  }
}

/** The status endpoint changes only the status and metadata.managedFields. */
function keepAllButStatus({ obj, old }: UpdateInput<KubeObject>): void {
  const object = obj as Unstructured
  const { status } = object
  const { managedFields } = obj.metadata
  for (const field of Object.keys(object)) delete (object as Record<string, unknown>)[field]
  Object.assign(object, deepCopy(old))
  if (status === undefined) delete object.status
  else object.status = status
  if (managedFields === undefined) delete obj.metadata.managedFields
  else obj.metadata.managedFields = managedFields
}

/** A valid list must stay valid; a list that was already invalid is tolerated. */
function listFaults(object: KubeObject, old: Frozen<KubeObject>, schema: Schema): FieldError[] {
  const faults = validateListTypes(object, schema)
  return faults.length > 0 && validateListTypes(old, schema).length === 0 ? faults : []
}

const blocking: ReadonlySet<FieldError['type']> = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
])
const notChecked = 'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation'

/** Rules are not evaluated for objects with schema errors. */
function ruleFaults(
  rules: RuleValidation | undefined,
  errors: readonly FieldError[],
  { obj, context }: CreateInput<KubeObject>,
  old: Frozen<KubeObject> | undefined,
) {
  if (!rules) return []
  if (errors.some(({ type }) => blocking.has(type))) return [fieldError.invalid(FieldPath.of('<nil>'), null, notChecked)]
  const outcome = rules(obj, old)
  for (const warning of outcome.warnings) context.warn?.(warning)
  return outcome.errors
}

function selectableFields({ selectableFields: fields }: DefinitionVersion): NonNullable<KindStrategy['selectableFields']> {
  return Object.fromEntries(
    (fields ?? []).map(({ jsonPath }) => {
      const find = compileFirstOfJsonPath(jsonPath)
      const value = (object: Frozen<KubeObject>) => {
        const found = find(object)
        return found === undefined || found === null ? '' : String(found)
      }
      return [jsonPath.replace(/^\./, ''), value]
    }),
  )
}

function scaleOf(scale: Frozen<CustomResourceSubresourceScale>): NonNullable<KindStrategy['scale']> {
  const { specReplicasPath, statusReplicasPath, labelSelectorPath } = scale
  return {
    replicas: specReplicasPath,
    statusReplicas: statusReplicasPath,
    required: true,
    selector(object) {
      const found = labelSelectorPath ? valueAt(object, labelSelectorPath) : undefined
      return typeof found === 'string' ? found : ''
    },
  }
}

function valueAt(object: unknown, path: string): unknown {
  let value = object
  for (const part of path.replace(/^\./, '').split('.'))
    value = typeof value === 'object' && value !== null ? ownValue(value as Record<string, unknown>, part) : undefined
  return value
}

function scaleSpecFaults(scale: Frozen<CustomResourceSubresourceScale> | undefined, object: KubeObject): FieldError[] {
  return scale ? replicasFaults(object, scale.specReplicasPath) : []
}

function scaleStatusFaults(scale: Frozen<CustomResourceSubresourceScale> | undefined, object: KubeObject): FieldError[] {
  if (!scale) return []
  const errors = replicasFaults(object, scale.statusReplicasPath)
  const { labelSelectorPath: path } = scale
  const selector = path ? valueAt(object, path) : undefined
  if (path && selector !== undefined && typeof selector !== 'string')
    errors.push(fieldError.invalid(FieldPath.of(path), '', accessorFault(path, selector, 'string')))
  return errors
}

const mostReplicas = 2 ** 31 - 1

function replicasFaults(object: KubeObject, path: string): FieldError[] {
  const value = valueAt(object, path)
  if (value === undefined) return []
  if (typeof value !== 'bigint' && !Number.isInteger(value)) return [faultAt(path, 0, accessorFault(path, value, 'int64'))]
  if ((value as number | bigint) < 0) return [faultAt(path, value, 'should be a non-negative integer')]
  return (value as number | bigint) > mostReplicas ? [faultAt(path, value, `should be less than or equal to ${mostReplicas}`)] : []
}

/** The path as the definition writes it, with its leading dot. */
function faultAt(path: string, value: unknown, detail: string): FieldError {
  return { ...fieldError.invalid(FieldPath.of(path), value, detail), field: path }
}

/** The text of Go's unstructured accessors. */
function accessorFault(path: string, value: unknown, wanted: string): string {
  const goType = value === null ? '<nil>' : typeof value === 'number' ? 'float64' : typeof value === 'boolean' ? 'bool' : typeof value
  return `${path} accessor error: ${stringifyExactly(value)} is of the type ${goType}, expected ${wanted}`
}

const standardFinalizers: ReadonlySet<string> = new Set(['orphan', 'foregroundDeletion', 'kubernetes'])

function finalizerWarnings(object: KubeObject, old: Frozen<KubeObject> | undefined): string[] {
  const before = new Set(old?.metadata.finalizers ?? [])
  const added = [...new Set(object.metadata.finalizers ?? [])].filter((name) => !before.has(name)).sort()
  return added.flatMap((name) => {
    const at = `metadata.finalizers: ${JSON.stringify(name)}`
    const faults = isQualifiedName(name).map((fault) => `${at}: ${fault}`)
    if (name.includes('/') || standardFinalizers.has(name)) return faults
    const how = name.includes('.') ? 'prefer a domain-qualified finalizer name including a path (/)' : 'prefer a domain-qualified finalizer name'
    return [...faults, `${at}: ${how} to avoid accidental conflicts with other finalizer writers`]
  })
}
