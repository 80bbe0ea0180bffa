/**
 * The defaults of a schema are values that the schema itself accepts (L1).
 * Upstream: apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go (v1.36).
 */
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateEmbeddedResources } from '#api/schema/embeddedResources'
import { compileNode, pruneUnknownFields } from '#api/schema/structural'
import { compileValidation } from '#api/schema/structuralValidation'
import { deepCopy } from '#base/frozen'
import { itemsOf, type Props } from './schemaWalk.ts'

/** Checks the rules of a default against the node that has it; empty when there are none. */
export type DefaultRuleCheck = (props: Props, value: unknown, path: FieldPath) => readonly FieldError[]

export function defaultFaults(props: Props, path: FieldPath, requirePruned: boolean, checkRules?: DefaultRuleCheck): FieldError[] {
  return visit(props, path, { requirePruned, checkRules, insideMetadata: false, isObject: true })
}

interface Context {
  readonly requirePruned: boolean
  readonly checkRules: DefaultRuleCheck | undefined
  readonly insideMetadata: boolean
  /** The root, and embedded resources: their metadata is not the schema's to describe. */
  readonly isObject: boolean
}

function visit(props: Props, path: FieldPath, context: Context): FieldError[] {
  const errors = props.default === undefined ? [] : valueFaults(props, path.child('default'), context)
  const embedded = context.isObject || props['x-kubernetes-embedded-resource'] === true
  const items = itemsOf(props)
  const below = { ...context, isObject: false }
  if (items) errors.push(...visit(items, path.child('items'), below))
  for (const [name, child] of Object.entries(props.properties ?? {})) {
    const insideMetadata = embedded ? ['metadata', 'apiVersion', 'kind'].includes(name) : context.insideMetadata
    errors.push(...visit(child, path.child('properties').key(name), { ...below, insideMetadata }))
  }
  return errors
}

function valueFaults(props: Props, path: FieldPath, { requirePruned, checkRules, insideMetadata }: Context): FieldError[] {
  const mutable = deepCopy<JSONSchemaProps>(props)
  const schema = compileNode(mutable)
  const errors: FieldError[] = []
  const pruned = deepCopy(props.default)
  if (requirePruned && !insideMetadata && pruneUnknownFields(pruned, schema).length > 0) {
    errors.push(fieldError.invalid(path, props.default, 'must not have unknown fields'))
  }
  const embedded = validateEmbeddedResources(props.default, schema, path)
  if (embedded.length > 0) return [...errors, ...embedded]
  const values = compileValidation(mutable, path.toString())(props.default)
  if (values.length > 0) return [...errors, ...values]
  return [...errors, ...(checkRules?.(props, props.default, path) ?? [])]
}
