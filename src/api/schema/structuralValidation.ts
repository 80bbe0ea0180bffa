/**
 * Checks a custom resource against its CRD's openAPIV3Schema (L1): types and value rules, with upstream's messages. Made once per CRD
 * version; patterns are RE2, so no pattern can hang the server. CEL rules are not this file's matter.
 * Upstream: kube-openapi/pkg/validation/validate, apiextensions-apiserver/pkg/apiserver/validation/validation.go (v1.36).
 */
import { RE2JS } from 're2js'
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { parseTime } from '#base/time'
import type { FieldError } from '../machinery/fieldPath.ts'
import { FieldPath, fieldError } from '../machinery/fieldPath.ts'
import { isObject, jsonEqual } from '../machinery/patch/objects.ts'

type Check = (value: unknown, path: string, errors: FieldError[]) => void

/**
 * Compiles the rules. The returned function lists the faults of a whole object.
 * @throws Error when a pattern is no RE2: CRD validation refuses such a schema before.
 */
export function compileValidation(props: JSONSchemaProps): (object: unknown) => FieldError[] {
  const check = compile(props)
  return (object) => {
    const errors: FieldError[] = []
    check(object, '', errors)
    return errors
  }
}

const at = (path: string) => FieldPath.of(...(path === '' ? [] : [path]))
const inBody = (path: string, rule: string) => `${path} in body ${rule}`

function compile(props: JSONSchemaProps): Check {
  const checks: Check[] = [...numberChecks(props), ...stringChecks(props), ...arrayChecks(props), ...objectChecks(props), ...choiceChecks(props)]
  const isType = typeCheck(props)
  return (value, path, errors) => {
    if (value === null && props.nullable) return
    const wrong = isType(value)
    if (wrong !== undefined) {
      const actual = typeName(value)
      errors.push(fieldError.typeInvalid(at(path), actual, inBody(path, `must be of type ${wrong}: ${JSON.stringify(actual)}`)))
      return
    }
    for (const check of checks) check(value, path, errors)
  }
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

/** The type that was wanted, when the value is of another. */
function typeCheck(props: JSONSchemaProps): (value: unknown) => string | undefined {
  if (props['x-kubernetes-int-or-string']) return (value) => (typeof value === 'string' || Number.isInteger(value) ? undefined : 'integer,string')
  const { type } = props
  if (type === undefined || type === '') return () => undefined
  return (value) => {
    const actual = typeName(value)
    return actual === type || (type === 'number' && actual === 'integer') ? undefined : type
  }
}

function numberChecks({ minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf }: JSONSchemaProps): Check[] {
  const rule =
    (holds: (value: number) => boolean, text: string): Check =>
    (value, path, errors) => {
      if (typeof value === 'number' && !holds(value)) errors.push(fieldError.invalid(at(path), value, inBody(path, text)))
    }
  const checks: Check[] = []
  if (minimum !== undefined) {
    checks.push(
      exclusiveMinimum
        ? rule((n) => n > minimum, `should be greater than ${minimum}`)
        : rule((n) => n >= minimum, `should be greater than or equal to ${minimum}`),
    )
  }
  if (maximum !== undefined) {
    checks.push(
      exclusiveMaximum ? rule((n) => n < maximum, `should be less than ${maximum}`) : rule((n) => n <= maximum, `should be less than or equal to ${maximum}`),
    )
  }
  if (multipleOf !== undefined) checks.push(rule((n) => Number.isInteger(Number((n / multipleOf).toPrecision(15))), `should be a multiple of ${multipleOf}`))
  return checks
}

function stringChecks({ minLength, maxLength, pattern, format }: JSONSchemaProps): Check[] {
  const rule =
    (check: (value: string, path: string, errors: FieldError[]) => void): Check =>
    (value, path, errors) => {
      if (typeof value === 'string') check(value, path, errors)
    }
  // Lengths count characters, not UTF-16 units.
  const lengthOf = (value: string) => [...value].length
  const checks: Check[] = []
  if (maxLength !== undefined) {
    checks.push(rule((value, path, errors) => void (lengthOf(value) > maxLength && errors.push(fieldError.tooLong(at(path), maxLength)))))
  }
  if (minLength !== undefined) {
    checks.push(
      rule(
        (value, path, errors) =>
          void (lengthOf(value) < minLength && errors.push(fieldError.invalid(at(path), value, inBody(path, `should be at least ${minLength} chars long`)))),
      ),
    )
  }
  if (pattern !== undefined && pattern !== '') {
    const compiled = RE2JS.compile(pattern)
    checks.push(
      rule(
        (value, path, errors) =>
          void (compiled.matcher(value).find() || errors.push(fieldError.invalid(at(path), value, inBody(path, `should match '${pattern}'`)))),
      ),
    )
  }
  const holds = formats[format ?? '']
  if (holds) {
    checks.push(
      rule(
        (value, path, errors) =>
          void (holds(value) || errors.push(fieldError.invalid(at(path), value, inBody(path, `must be of type ${format}: ${JSON.stringify(value)}`)))),
      ),
    )
  }
  return checks
}

/** The formats that upstream checks and that need no more than a look; others are accepted. */
const formats: Readonly<Record<string, (value: string) => boolean>> = {
  'date-time': (value) => parseTime(value) !== undefined,
  date: (value) => parseTime(`${value}T00:00:00Z`) !== undefined,
  byte: (value) => value.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(value),
  uuid: (value) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(value),
  ipv4: (value) => /^((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.|$)){4}$/.test(value) && !value.endsWith('.'),
}

function arrayChecks({ minItems, maxItems, uniqueItems, items }: JSONSchemaProps): Check[] {
  const element = isObject(items) ? compile(items as JSONSchemaProps) : undefined
  return [
    (value, path, errors) => {
      if (!Array.isArray(value)) return
      if (minItems !== undefined && value.length < minItems)
        errors.push(fieldError.invalid(at(path), value.length, inBody(path, `should have at least ${minItems} items`)))
      if (maxItems !== undefined && value.length > maxItems) errors.push(fieldError.tooMany(at(path), value.length, maxItems))
      if (uniqueItems && value.some((item, index) => value.slice(0, index).some((other) => jsonEqual(item, other)))) {
        errors.push(fieldError.invalid(at(path), '', inBody(path, "shouldn't contain duplicates")))
      }
      if (element) for (const [index, item] of value.entries()) element(item, `${path}[${index}]`, errors)
    },
  ]
}

function objectChecks({ properties, required, additionalProperties, minProperties, maxProperties }: JSONSchemaProps): Check[] {
  const members = Object.entries(properties ?? {}).map(([name, child]) => [name, compile(child)] as const)
  const rest = isObject(additionalProperties) ? compile(additionalProperties as JSONSchemaProps) : undefined
  const known = new Set(members.map(([name]) => name))
  return [
    (value, path, errors) => {
      if (!isObject(value)) return
      const child = (name: string) => (path === '' ? name : `${path}.${name}`)
      const size = Object.keys(value).length
      if (minProperties !== undefined && size < minProperties)
        errors.push(fieldError.invalid(at(path), size, inBody(path, `should have at least ${minProperties} properties`)))
      if (maxProperties !== undefined && size > maxProperties) errors.push(fieldError.tooMany(at(path), size, maxProperties))
      for (const name of required ?? []) {
        if (!Object.hasOwn(value, name)) errors.push(fieldError.required(at(child(name))))
      }
      for (const [name, check] of members) {
        if (Object.hasOwn(value, name)) check(value[name], child(name), errors)
      }
      if (rest) {
        for (const name of Object.keys(value)) if (!known.has(name)) rest(value[name], child(name), errors)
      }
    },
  ]
}

function choiceChecks({ enum: choices, anyOf, oneOf, allOf, not }: JSONSchemaProps): Check[] {
  const checks: Check[] = []
  if (choices) {
    checks.push((value, path, errors) => {
      if (!choices.some((choice) => jsonEqual(choice, value))) {
        const supported = choices.map((choice) => (typeof choice === 'string' ? choice : JSON.stringify(choice)))
        errors.push(fieldError.notSupported(at(path), value, supported))
      }
    })
  }
  const count = (list: readonly Check[], value: unknown, path: string): number =>
    list.filter((check) => {
      const faults: FieldError[] = []
      check(value, path, faults)
      return faults.length === 0
    }).length
  const rule = (list: readonly JSONSchemaProps[] | undefined, holds: (valid: number, all: number) => boolean, text: (valid: number) => string) => {
    if (list === undefined || list.length === 0) return
    const compiled = list.map(compile)
    checks.push((value, path, errors) => {
      const valid = count(compiled, value, path)
      if (!holds(valid, compiled.length)) errors.push(fieldError.invalid(at(path), '', `"${path}" ${text(valid)}`))
    })
  }
  rule(
    anyOf,
    (valid) => valid > 0,
    () => 'must validate at least one schema (anyOf)',
  )
  rule(
    oneOf,
    (valid) => valid === 1,
    (valid) => `must validate one and only one schema (oneOf). Found ${valid === 0 ? 'none valid' : `${valid} valid alternatives`}`,
  )
  rule(
    not && [not],
    (valid) => valid === 0,
    () => 'must not validate the schema (not)',
  )
  // The faults of allOf are reported where they are; upstream adds that not all hold.
  for (const check of (allOf ?? []).map(compile)) checks.push(check)
  rule(
    allOf,
    (valid, all) => valid === all,
    () => 'must validate all the schemas (allOf)',
  )
  return checks
}
