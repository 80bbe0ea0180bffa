/**
 * The rules for a CustomResourceDefinition's spec (L1). What all versions share is checked once and named where upstream's internal form has
 * it: spec.validation, spec.subresources, spec.additionalPrinterColumns, spec.selectableFields.
 * Upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation, its v1/conversion.go (v1.36).
 */
import type { CustomResourceDefinition, CustomResourceDefinitionSpec, CustomResourceDefinitionVersion } from '#api/gen/types/apiextensions.v1'
import { isConditionTrue } from '#api/machinery/conditions'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isDns1035Label, isDns1123Subdomain } from '#api/machinery/names'
import { jsonEqual } from '#api/machinery/objects'
import { append } from '#base/extremes'
import { workOnce } from '#cel/compilingInSteps'
import { type ConversionOptions, conversionFaults, isCaBundle, recognizesReviewVersion } from './conversion.ts'
import { type DefaultRuleCheck, defaultFaults } from './defaultRules.ts'
import { breaksAtomicSets, breaksMapListKeys, hasUnknownType, type RuleCheck, type SchemaOptions, schemaFaults } from './schemaRules.ts'
import type { Props } from './schemaWalk.ts'
import { nodesOf, structuralFaults, unsupportedMember } from './structuralRules.ts'
import { columnFaults, deprecationFaults, mayHaveTooMany, namesFaults, selectableFieldsFaults, subresourcesFaults } from './versionRules.ts'

type Spec = Frozen<CustomResourceDefinitionSpec>
type Version = Frozen<CustomResourceDefinitionVersion>

/** How strict a write is: what an old definition already breaks, a newer rule does not hold against it. */
interface Options extends SchemaOptions, ConversionOptions {
  readonly requireSchema: boolean
  readonly requireStructural: boolean
  readonly requirePrunedDefaults: boolean
  readonly old: Spec | undefined
}

/** Checks the CEL rules of a schema. Each schema gets its own checker, because the costs of a schema's rules add up. */
export interface SchemaRuleChecker {
  readonly check: RuleCheck
  readonly checkDefault: DefaultRuleCheck
  /** After all rules have been seen: faults of the schema as a whole. */
  totalFaults(path: FieldPath): readonly FieldError[]
}

/** `unchanged`: the version had this very schema before, so that limits of today are not held against it. */
export type SchemaRuleCheckerFactory = (schema: Props, unchanged: boolean) => SchemaRuleChecker

export function specFaults(spec: Spec, old: Frozen<CustomResourceDefinition> | undefined, makeChecker: SchemaRuleCheckerFactory): FieldError[] {
  const path = FieldPath.of('spec')
  const options = optionsFor(old)
  const { versions = [] } = spec
  const errors = groupFaults(spec, path)
  const shared = sharedParts(versions)
  if (options.requireSchema) {
    for (const [index, { schema }] of versions.entries()) {
      if (!schema?.openAPIV3Schema) errors.push(fieldError.required(path.child('versions').index(index).child('schema', 'openAPIV3Schema')))
    }
  }
  const check = new VersionCheck(spec, options, makeChecker)
  for (const [index, version] of versions.entries()) {
    const at = path.child('versions').index(index)
    const faults = isDns1035Label(version.name)
    if (faults.length > 0) errors.push(fieldError.invalid(at.child('name'), version.name, faults.join(',')))
    errors.push(...deprecationFaults(version, at), ...check.parts(version, at, (part) => !shared.has(part), 'schema'))
  }
  errors.push(...versionListFaults(versions, path.child('versions')))
  for (const field of ['plural', 'singular', 'kind', 'listKind'] as const) {
    if (!spec.names[field]) errors.push(fieldError.required(path.child('names', field)))
  }
  errors.push(...namesFaults(spec.names, path.child('names')))
  const [first] = versions
  if (first) errors.push(...check.parts(first, path, (part) => shared.has(part), 'validation'))
  if (spec.conversion) errors.push(...conversionFaults(spec.conversion, path.child('conversion'), options))
  return errors
}

type Part = 'schema' | 'subresources' | 'additionalPrinterColumns' | 'selectableFields'

/** The parts that are the same in all versions. */
function sharedParts(versions: readonly Version[]): ReadonlySet<Part> {
  const parts: readonly Part[] = ['schema', 'subresources', 'additionalPrinterColumns', 'selectableFields']
  return new Set(parts.filter((part) => versions.every((version) => jsonEqual(version[part] ?? null, versions[0]?.[part] ?? null))))
}

class VersionCheck {
  readonly #spec: Spec
  readonly #options: Options
  readonly #makeChecker: SchemaRuleCheckerFactory

  constructor(spec: Spec, options: Options, makeChecker: SchemaRuleCheckerFactory) {
    this.#spec = spec
    this.#options = options
    this.#makeChecker = makeChecker
  }

  /** The faults of the chosen parts of a version. `schemaField`: what the schema is called there. */
  parts(version: Version, path: FieldPath, chosen: (part: Part) => boolean, schemaField: 'schema' | 'validation'): FieldError[] {
    const errors: FieldError[] = []
    const props = version.schema?.openAPIV3Schema
    if (chosen('schema') && props) errors.push(...this.#schema(version, props, path.child(schemaField)))
    if (chosen('subresources')) errors.push(...subresourcesFaults(version.subresources, path.child('subresources')))
    if (chosen('additionalPrinterColumns')) {
      const at = path.child('additionalPrinterColumns')
      errors.push(...(version.additionalPrinterColumns ?? []).flatMap((column, index) => columnFaults(column, at.index(index))))
    }
    if (chosen('selectableFields') && version.selectableFields?.length && props) {
      const old = this.#oldVersion(version)
      const allowTooMany = mayHaveTooMany(version.selectableFields, old?.selectableFields)
      errors.push(...selectableFieldsFaults(version.selectableFields, props, path.child('selectableFields'), allowTooMany))
    }
    return errors
  }

  #oldVersion({ name }: Version): Version | undefined {
    return this.#options.old?.versions.find((one) => one.name === name)
  }

  #schema(version: Version, props: Props, path: FieldPath): FieldError[] {
    const at = path.child('openAPIV3Schema')
    const errors: FieldError[] = []
    if (this.#hasStatus(version)) errors.push(...rootFaults(props, path))
    if (props.nullable) errors.push(fieldError.forbidden(path.child('openAPIV3Schema.nullable'), 'nullable cannot be true at the root'))
    const nodes = nodesOf(props)
    // Where the schema has rules, the compilation of each rule is a part of the work, and parts do not nest.
    const hasRules = nodes.some((node) => node['x-kubernetes-validations'] !== undefined)
    const once = <T>(name: string, work: () => T): T => (hasRules ? work() : workOnce(name, nodes.length, work))
    const unsupported = unsupportedMember(props)
    const checker = this.#makeChecker(props, jsonEqual(this.#oldVersion(version)?.schema ?? null, version.schema ?? null))
    let withRules = false
    if (this.#options.requireStructural && unsupported === undefined) {
      const structural = structuralFaults(props, at)
      const ofDefaults = () => defaultFaults(props, at, this.#options.requirePrunedDefaults, checker.checkDefault)
      const faults = structural.length > 0 ? structural : once('defaults', ofDefaults)
      append(errors, faults)
      withRules = faults.length === 0
    }
    const found = schemaFaults(props, at, this.#options, withRules && hasRules ? checker.check : undefined)
    append(append(errors, found.schema), found.rules)
    if (errors.length === 0 && unsupported !== undefined) errors.push(fieldError.invalid(at, '', unsupported))
    return withRules ? [...errors, ...checker.totalFaults(at)] : errors
  }

  #hasStatus(version: Version): boolean {
    const shared = this.#spec.versions.every((one) => jsonEqual(one.schema ?? null, version.schema ?? null))
    return (shared ? this.#spec.versions : [version]).some(({ subresources }) => subresources?.status !== undefined)
  }
}

function groupFaults({ group, scope, preserveUnknownFields, versions }: Spec, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const at = path.child('group')
  const faults = group ? isDns1123Subdomain(group) : []
  if (!group) errors.push(fieldError.required(at))
  else if (faults.length > 0) errors.push(fieldError.invalid(at, group, faults.join(',')))
  else if (!group.includes('.')) errors.push(fieldError.invalid(at, group, 'should be a domain with at least one dot'))
  if (!scope) errors.push(fieldError.required(path.child('scope')))
  else if (scope !== 'Cluster' && scope !== 'Namespaced') errors.push(fieldError.notSupported(path.child('scope'), scope, ['Cluster', 'Namespaced']))
  const hasDefaults = () => (versions ?? []).some(({ schema }) => nodesOf(schema?.openAPIV3Schema).some((one) => one.default !== undefined))
  if (preserveUnknownFields && hasDefaults())
    errors.push(fieldError.invalid(path.child('preserveUnknownFields'), true, 'must be false in order to use defaults in the schema'))
  return errors
}

function versionListFaults(versions: readonly Version[], path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (new Set(versions.map(({ name }) => name)).size < versions.length) errors.push(fieldError.invalid(path, versions, 'must contain unique version names'))
  if (versions.filter(({ storage }) => storage).length !== 1)
    errors.push(fieldError.invalid(path, versions, 'must have exactly one version marked as storage version'))
  return errors
}

/** Keywords that the root may have when the status subresource is on; the names are upstream's fields. */
const allowedAtRoot: Readonly<Record<string, string>> = {
  description: 'Description',
  type: 'Type',
  format: 'Format',
  title: 'Title',
  maximum: 'Maximum',
  exclusiveMaximum: 'ExclusiveMaximum',
  minimum: 'Minimum',
  exclusiveMinimum: 'ExclusiveMinimum',
  maxLength: 'MaxLength',
  minLength: 'MinLength',
  pattern: 'Pattern',
  maxItems: 'MaxItems',
  minItems: 'MinItems',
  uniqueItems: 'UniqueItems',
  multipleOf: 'MultipleOf',
  required: 'Required',
  items: 'Items',
  properties: 'Properties',
  externalDocs: 'ExternalDocs',
  example: 'Example',
  'x-kubernetes-preserve-unknown-fields': 'XPreserveUnknownFields',
  'x-kubernetes-validations': 'XValidations',
}

function rootFaults(props: Props, path: FieldPath): FieldError[] {
  if (props.type && props.type !== 'object') {
    const detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
    return [fieldError.invalid(path.child('openAPIV3Schema.type'), props.type, detail)]
  }
  const odd = Object.entries(props).some(([name, value]) => value !== undefined && value !== false && value !== '' && !Object.hasOwn(allowedAtRoot, name))
  if (!odd) return []
  const names = Object.values(allowedAtRoot).join(' ')
  const detail = `only [${names}] fields are allowed at the root of the schema if the status subresource is enabled`
  return [fieldError.invalid(path.child('openAPIV3Schema'), props, detail)]
}

function optionsFor(old: Frozen<CustomResourceDefinition> | undefined): Options {
  const spec = old?.spec
  const roots = (spec?.versions ?? []).map(({ schema }) => schema?.openAPIV3Schema)
  const nodes = roots.flatMap((props) => nodesOf(props))
  const anyNode = (holds: (props: Props) => boolean) => nodes.some(holds)
  const once = <T>(name: string, work: () => T): T => workOnce(name, nodes.length / 4, work)
  const nowhere = FieldPath.of()
  const isStructural = (props: Props | undefined) => !props || (unsupportedMember(props) === undefined && structuralFaults(props, nowhere).length === 0)
  const established = isConditionTrue(old?.status?.conditions, 'Established')
  const bundle = spec?.conversion?.webhook?.clientConfig?.caBundle ?? ''
  return {
    old: spec,
    requireSchema: roots.every((props) => props !== undefined),
    // Without spec.preserveUnknownFields everything is pruned, which needs a structural schema.
    requireStructural: !spec?.preserveUnknownFields || roots.every(isStructural),
    requirePrunedDefaults: roots.every((props) => !props || !isStructural(props) || !once('old defaults', () => hasUnprunedDefaults(props))),
    requireValidPropertyType: once('types', () => !anyNode(hasUnknownType)),
    requireAtomicSetType: once('sets', () => !anyNode(breaksAtomicSets)),
    requireMapListKeysMapSetValidation: once('keys', () => !anyNode((props) => breaksMapListKeys(props, nowhere))),
    requireRecognizedReviewVersion: recognizesReviewVersion(spec?.conversion),
    allowInvalidCaBundle: !established || (bundle !== '' && !isCaBundle(bundle)),
  }
}

function hasUnprunedDefaults(props: Props): boolean {
  return defaultFaults(props, FieldPath.of(), true).some(({ body }) => body.endsWith('must not have unknown fields'))
}
