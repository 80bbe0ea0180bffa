/**
 * Checks a custom resource against its CRD's openAPIV3Schema (L1): types and value rules, with upstream's messages. Made once per CRD
 * version; patterns are RE2, so no pattern can hang the server. On updates, what was invalid before and is unchanged is let through
 * (ratcheting). CEL rules, list types and embedded metadata are not this file's matter.
 * Upstream: kube-openapi/pkg/validation/validate, apiextensions-apiserver/pkg/apiserver/validation (validation.go, ratcheting.go; v1.36).
 */

import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { bareMap, ownValue } from '#base/bareMap'
import { patternCost } from '#cel/compilingInSteps'
import { compileRegularExpression } from '#cel/regularExpression'
import { stringifyExactly } from '../machinery/exactIntegers.ts'
import { type FieldError, FieldPath, fieldError } from '../machinery/fieldPath.ts'
import { isObject, jsonKey } from '../machinery/objects.ts'
import { Allowance, Findings } from './findings.ts'
import { formatCheck, isRecognizedFormat } from './formats.ts'

/** In place of an old value that nothing corresponds to. */
export const uncorrelated: unique symbol = Symbol('uncorrelated')

/** `path` is relative to the validated value; `old` is the corresponding old value or `uncorrelated`. */
type Check = (value: unknown, path: string, found: Findings, old: unknown) => void

export type ValueValidation = (value: unknown, old?: unknown) => FieldError[]

/**
 * Compiles the rules. The returned function lists the faults of a whole value; given the old one, unchanged faults are tolerated.
 * @param prefix where the value stands in its object: '' or 'status'
 * @param steps how much looking one value may cost, when it is not the usual; more is a StatusError RequestEntityTooLarge
 * @throws Error when a pattern is no RE2: CRD validation refuses such a schema before.
 */
export function compileValidation(props: JSONSchemaProps, prefix = '', steps?: number): ValueValidation {
  const compiling = compileValidationInSteps(props, prefix, steps)
  for (;;) {
    const step = compiling.next()
    if (step.done) return step.value
  }
}

/** {@link compileValidation}; pauses after each share of a large schema. */
export function* compileValidationInSteps(props: JSONSchemaProps, prefix = '', steps?: number): Generator<undefined, ValueValidation> {
  const check = yield* new Compiler(prefix).compile(props)
  return (value, old = uncorrelated) => {
    const found = Findings.telling(new Allowance(steps))
    check(value, '', found, old)
    return found.errors
  }
}

/** What costs as much as looking at a part of the object, as powers of two: sixteen characters of a text, sixteen names of members. */
const characterSteps = 4
const memberSteps = 4

const inBody = (path: string, rule: string) => `${path} in body ${rule}`
const childPath = (path: string, name: string) => (path === '' ? name : `${path}.${name}`)
const childOf = (old: unknown, name: string) => (isObject(old) && Object.hasOwn(old, name) ? old[name] : uncorrelated)

/** Schemas and parts of patterns that are compiled before others get a turn: some milliseconds of work. */
const shareOfSchema = 1000

class Compiler {
  readonly #prefix: string
  /** Definitions repeat their patterns. */
  readonly #patterns = new Map<string, ReturnType<typeof compileRegularExpression>>()
  #done = 0

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  *compile(props: JSONSchemaProps): Generator<undefined, Check> {
    this.#done++
    if (this.#done >= shareOfSchema) {
      this.#done = 0
      yield
    }
    const choices = yield* this.#choiceChecks(props)
    const inside = [...this.#stringChecks(props), ...this.#numberChecks(props), ...(yield* this.#arrayChecks(props))]
    const enumeration = this.#enumCheck(props)
    const members = yield* this.#objectChecks(props)
    const wrongType = typeFault(props)
    return (value, path, found, old) => {
      const before = found.faults
      found.visit()
      const fault = wrongType(value)
      if (fault)
        found.add(() =>
          fieldError.typeInvalid(this.#at(path), fault.actual, inBody(path, `must be of type ${fault.wanted}: ${stringifyExactly(fault.actual)}`)),
        )
      if (value !== null) {
        for (const check of choices) check(value, path, found, old)
        for (const check of inside) check(value, path, found, old)
      }
      enumeration?.(value, path, found, old)
      if (value !== null) for (const check of members) check(value, path, found, old)
      // What was wrong already and has not been touched stays as it is.
      if (found.faults > before && old !== uncorrelated && found.allowance.same(value, old)) found.forgetSince(before)
    }
  }

  #pattern(pattern: string): ReturnType<typeof compileRegularExpression> {
    const known = this.#patterns.get(pattern)
    if (known) return known
    this.#done += patternCost(pattern)
    const compiled = compileRegularExpression(pattern)
    this.#patterns.set(pattern, compiled)
    return compiled
  }

  *#all(schemas: readonly JSONSchemaProps[]): Generator<undefined, Check[]> {
    const checks: Check[] = []
    for (const one of schemas) checks.push(yield* this.compile(one))
    return checks
  }

  #at(path: string): FieldPath {
    return FieldPath.of(...[this.#prefix, path].filter((part) => part !== ''))
  }

  /** Faults of anyOf and its like name no field but that of the whole value; upstream prints an absent path so. */
  #whole(): FieldPath {
    return FieldPath.of(this.#prefix || '<nil>')
  }

  #numberChecks(props: JSONSchemaProps): Check[] {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = props
    const rule =
      (holds: (value: number | bigint) => boolean, text: string): Check =>
      (value, path, found) => {
        if (isNumber(value) && !holds(value)) found.add(() => fieldError.invalid(this.#at(path), value, inBody(path, text)))
      }
    const range = numberRange(props)
    const inRange =
      (what: string, bound?: number): Check =>
      (value, path, found) => {
        if (!range || !isNumber(value) || range.holds(bound ?? value)) return
        found.add(() => fieldError.invalid(this.#whole(), '', `${what} value must be of type ${range.text} in ${path}`))
      }
    const checks: Check[] = range ? [inRange('Checked')] : []
    if (multipleOf !== undefined) {
      checks.push(inRange('MultipleOf', multipleOf))
      checks.push(rule((n) => Number.isInteger(Number((Number(n) / multipleOf).toPrecision(15))), `should be a multiple of ${multipleOf}`))
    }
    if (minimum !== undefined) {
      checks.push(inRange('Minimum boundary', minimum))
      checks.push(
        exclusiveMinimum
          ? rule((n) => n > minimum, `should be greater than ${minimum}`)
          : rule((n) => n >= minimum, `should be greater than or equal to ${minimum}`),
      )
    }
    if (maximum !== undefined) {
      checks.push(inRange('Maximum boundary', maximum))
      checks.push(
        exclusiveMaximum ? rule((n) => n < maximum, `should be less than ${maximum}`) : rule((n) => n <= maximum, `should be less than or equal to ${maximum}`),
      )
    }
    return checks
  }

  #stringChecks({ minLength, maxLength, pattern, format, type }: JSONSchemaProps): Check[] {
    const rule =
      (holds: (value: string) => boolean, fault: (value: string, path: string) => FieldError): Check =>
      (value, path, found) => {
        if (typeof value !== 'string') return
        found.allowance.spend(value.length >> characterSteps)
        if (!holds(value)) found.add(() => fault(value, path))
      }
    const checks: Check[] = []
    if (maxLength !== undefined)
      checks.push(
        rule(
          (value) => lengthOf(value) <= maxLength,
          (_, path) => fieldError.tooLong(this.#at(path), maxLength),
        ),
      )
    const plain = (holds: (value: string) => boolean, text: string) =>
      rule(holds, (value, path) => fieldError.invalid(this.#at(path), value, inBody(path, text)))
    if (minLength !== undefined) checks.push(plain((value) => lengthOf(value) >= minLength, `should be at least ${minLength} chars long`))
    if (pattern !== undefined && pattern !== '') {
      const compiled = this.#pattern(pattern)
      checks.push(plain((value) => compiled.matcher(value).find(), `should match '${pattern}'`))
    }
    const holds = type === undefined || type === '' || type === 'string' ? formatCheck(format) : undefined
    if (holds) {
      // Upstream reports a wrong format as a wrong type.
      checks.push(
        rule(holds, (value, path) => fieldError.typeInvalid(this.#at(path), value, inBody(path, `must be of type ${format}: ${JSON.stringify(value)}`))),
      )
    }
    return checks
  }

  *#arrayChecks({ minItems, maxItems, uniqueItems, items, ...props }: JSONSchemaProps): Generator<undefined, Check[]> {
    const element = isObject(items) ? yield* this.compile(items as JSONSchemaProps) : undefined
    if (!element && minItems === undefined && maxItems === undefined && !uniqueItems) return []
    const keys = props['x-kubernetes-list-type'] === 'map' ? (props['x-kubernetes-list-map-keys'] ?? []) : undefined
    return [
      (value, path, found, old) => {
        if (!Array.isArray(value)) return
        const oldItem = correlateItems(old, keys)
        if (element) for (const [index, item] of value.entries()) element(item, `${path}[${index}]`, found, oldItem(item))
        if (minItems !== undefined && value.length < minItems)
          found.add(() => fieldError.invalid(this.#at(path), value.length, inBody(path, `should have at least ${minItems} items`)))
        if (maxItems !== undefined && value.length > maxItems) found.add(() => fieldError.tooMany(this.#at(path), value.length, maxItems))
        if (uniqueItems && new Set(value.map((item) => stringifyExactly(item))).size < value.length)
          found.add(() => fieldError.invalid(this.#at(path), '', inBody(path, "shouldn't contain duplicates")))
      },
    ]
  }

  *#objectChecks({ properties, required, additionalProperties, minProperties, maxProperties }: JSONSchemaProps): Generator<undefined, Check[]> {
    const names = Object.keys(properties ?? {})
    const compiled = yield* this.#all(Object.values(properties ?? {}))
    const members = names.map((name, at) => [name, compiled[at] as Check] as const)
    const rest = isObject(additionalProperties) ? yield* this.compile(additionalProperties as JSONSchemaProps) : undefined
    const known = new Set(members.map(([name]) => name))
    const looks = (members.length + (required?.length ?? 0)) >> memberSteps
    return [
      (value, path, found, old) => {
        if (!isObject(value)) return
        found.allowance.spend(looks)
        const size = minProperties === undefined && maxProperties === undefined ? 0 : Object.keys(value).length
        if (minProperties !== undefined && size < minProperties)
          found.add(() => fieldError.invalid(this.#at(path), size, inBody(path, `should have at least ${minProperties} properties`)))
        if (maxProperties !== undefined && size > maxProperties) found.add(() => fieldError.tooMany(this.#at(path), size, maxProperties))
        if (additionalProperties === false) {
          for (const name of Object.keys(value)) {
            if (!known.has(name)) found.add(() => fieldError.invalid(this.#at(path), name, `${path}.${name} in body is a forbidden property`))
          }
        }
        if (rest) {
          for (const name of Object.keys(value)) if (!known.has(name)) rest(value[name], childPath(path, name), found, childOf(old, name))
        }
        for (const [name, check] of members) if (Object.hasOwn(value, name)) check(value[name], childPath(path, name), found, childOf(old, name))
        for (const name of required ?? []) if (!Object.hasOwn(value, name)) found.add(() => fieldError.required(this.#at(childPath(path, name))))
      },
    ]
  }

  #enumCheck({ enum: choices }: JSONSchemaProps): Check | undefined {
    if (!choices || choices.length === 0) return undefined
    const supported = choices.map((choice) => (typeof choice === 'string' ? choice : stringifyExactly(choice)))
    const keys = new Set(choices.map(jsonKey))
    return (value, path, found) => {
      // Null is never one of the choices, as upstream.
      if (value !== null && keys.has(jsonKey(value))) return
      found.allowance.spend(supported.length >> memberSteps)
      found.add(() => fieldError.notSupported(this.#at(path), value, supported))
    }
  }

  *#choiceChecks({ anyOf, oneOf, allOf, not }: JSONSchemaProps): Generator<undefined, Check[]> {
    const checks: Check[] = []
    const fail = (path: string, text: string) => fieldError.invalid(this.#whole(), '', `${JSON.stringify(path)} ${text}`)
    if (anyOf?.length)
      checks.push(
        alternatives(yield* this.#all(anyOf), {
          holds: (valid) => valid > 0,
          isDecided: (valid) => valid > 0,
          fault: (path) => fail(path, 'must validate at least one schema (anyOf)'),
        }),
      )
    if (oneOf?.length) {
      const text = (valid: number) => `must validate one and only one schema (oneOf). Found ${valid === 0 ? 'none valid' : `${valid} valid alternatives`}`
      checks.push(
        alternatives(yield* this.#all(oneOf), {
          holds: (valid) => valid === 1,
          isDecided: () => false,
          fault: (path, valid) => fail(path, text(valid)),
        }),
      )
    }
    if (allOf?.length) {
      const compiled = yield* this.#all(allOf)
      checks.push((value, path, found, old) => {
        let valid = 0
        for (const check of compiled) {
          const before = found.faults
          const { visited } = found
          check(value, path, found, old)
          // What its parts look at does not bring an alternative nearer.
          found.visited = visited
          if (found.faults === before) valid++
        }
        if (valid < compiled.length) found.add(() => fail(path, `must validate all the schemas (allOf)${valid === 0 ? '. None validated' : ''}`))
      })
    }
    if (not) {
      const compiled = yield* this.compile(not)
      checks.push((value, path, found, old) => {
        if (probe(compiled, value, path, found, old).faults === 0) found.add(() => fail(path, 'must not validate the schema (not)'))
      })
    }
    return checks
  }
}

/** If no alternative fits, the faults of the closest one are reported, too. */
function alternatives(compiled: readonly Check[], { holds, isDecided, fault }: Choice): Check {
  return (value, path, found, old) => {
    let valid = 0
    let best: Check | undefined
    let bestVisited = -1
    for (const check of compiled) {
      const { faults, visited } = probe(check, value, path, found, old)
      if (faults === 0) valid++
      else if (visited > bestVisited) {
        best = check
        bestVisited = visited
      }
      if (isDecided(valid)) return
    }
    if (holds(valid)) return
    found.add(() => fault(path, valid))
    if (valid > 0 || !best || found.probing) return
    const nearest = Findings.telling(found.allowance)
    best(value, path, nearest, old)
    found.addAll(nearest)
  }
}

/** How many alternatives must fit. */
interface Choice {
  readonly holds: (valid: number) => boolean
  /** Whether those that are left cannot change anything. */
  readonly isDecided: (valid: number) => boolean
  readonly fault: (path: string, valid: number) => FieldError
}

/** Tries an alternative: its faults are counted, not worded. */
function probe(check: Check, value: unknown, path: string, { allowance }: Findings, old: unknown): Findings {
  const found = Findings.probing(allowance)
  check(value, path, found, old)
  return found
}

/** Finds the old item of a new one: by its keys in lists of type map, in no other list. */
export function correlateItems(old: unknown, keys: readonly string[] | undefined): (item: unknown) => unknown {
  if (!Array.isArray(old) || keys === undefined) return () => uncorrelated
  const keyOf = (item: unknown) => (isObject(item) ? stringifyExactly(keys.map((key) => ownValue(item, key) ?? null)) : undefined)
  const byKey = new Map<string | undefined, unknown>()
  for (const item of old) if (!byKey.has(keyOf(item))) byKey.set(keyOf(item), item)
  return (item) => {
    const key = keyOf(item)
    return key !== undefined && byKey.has(key) ? byKey.get(key) : uncorrelated
  }
}

/** Lengths count characters, not UTF-16 units. */
function lengthOf(value: string): number {
  let length = 0
  for (const _ of value) length++
  return length
}

const isNumber = (value: unknown): value is number | bigint => typeof value === 'number' || typeof value === 'bigint'
/** Bigints are int64s that no double holds. */
const isInt64 = (value: number | bigint) => typeof value === 'bigint' || (Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63)

/** Which numbers the type and format can hold; undefined when they can hold all. */
function numberRange({ type, format = '' }: JSONSchemaProps): { holds(value: number | bigint): boolean; text: string } | undefined {
  const known = isRecognizedFormat(type, format)
  if (type === 'integer') {
    const narrow = known && format === 'int32'
    return {
      holds: (value) => (narrow ? Number.isInteger(value) && value >= -(2 ** 31) && value < 2 ** 31 : isInt64(value)),
      text: known ? `integer with format ${format}` : 'integer (default format)',
    }
  }
  if (type !== 'number' || format !== 'float') return undefined
  return { holds: (value) => Number.isFinite(Math.fround(Number(value))), text: 'number with format float' }
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (isNumber(value)) return isInt64(value) ? 'integer' : 'number'
  return typeof value
}

interface TypeFault {
  readonly wanted: string
  readonly actual: string
}

/** The type that was wanted and what came, when they differ. */
function typeFault(props: JSONSchemaProps): (value: unknown) => TypeFault | undefined {
  const type = props['x-kubernetes-int-or-string'] ? 'integer,string' : (props.type ?? '')
  const format = props.format && isRecognizedFormat(type, props.format) ? props.format : undefined
  if (type === '' && !format) return () => undefined
  const allowed = new Set(type.split(','))
  if (allowed.has('number')) allowed.add('integer')
  return (value) => {
    const actual = typeName(value)
    if (value === null) return props.nullable || type === '' ? undefined : { wanted: type, actual }
    if (allowed.has(actual)) return undefined
    // With a format, upstream compares the formats of what is neither a string nor a list.
    if (format && actual !== 'string' && actual !== 'array') return { wanted: format, actual: formatNames[actual] ?? '' }
    return type === '' ? undefined : { wanted: type, actual }
  }
}

const formatNames: Readonly<Record<string, string>> = bareMap({ integer: 'int64', number: 'float64' })
