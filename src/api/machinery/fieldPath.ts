/**
 * Field paths and field errors (L1), as validation reports them. Upstream: apimachinery/pkg/util/validation/field (v1.36).
 */
import { StatusError } from './status.ts'

/**
 * A path such as `spec.containers[0].env[KEY].name`. Immutable; children share their parents. Nearly all of them are never shown, so the text
 * is put together when it is asked for.
 */
export class FieldPath {
  readonly #parent: FieldPath | undefined
  readonly #step: string | number
  readonly #isKey: boolean

  private constructor(parent: FieldPath | undefined, step: string | number, isKey = false) {
    this.#parent = parent
    this.#step = step
    this.#isKey = isKey
  }

  static of(...names: string[]): FieldPath {
    return new FieldPath(undefined, names.join('.'))
  }

  child(name: string, ...more: string[]): FieldPath {
    let path = new FieldPath(this, name)
    for (const one of more) path = new FieldPath(path, one)
    return path
  }

  index(index: number): FieldPath {
    return new FieldPath(this, index)
  }

  key(key: string): FieldPath {
    return new FieldPath(this, key, true)
  }

  toString(): string {
    const parent = this.#parent?.toString() ?? ''
    if (this.#isKey || typeof this.#step === 'number') return `${parent}[${this.#step}]`
    return parent === '' ? this.#step : `${parent}.${this.#step}`
  }
}

/** metav1.CauseType values that validation uses. */
export type FieldErrorType =
  | 'FieldValueNotFound'
  | 'FieldValueRequired'
  | 'FieldValueDuplicate'
  | 'FieldValueInvalid'
  | 'FieldValueTypeInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'InternalError'

export interface FieldError {
  readonly type: FieldErrorType
  readonly field: string
  /** Without the field: `Invalid value: "x": must be …`. */
  readonly body: string
}

/** Go's %q for strings, %v for numbers and booleans, JSON for the rest: how upstream prints a bad value. */
export function printValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (value === undefined || value === null) return 'null'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

const withDetail = (head: string, detail: string) => (detail ? `${head}: ${detail}` : head)

/** Puts the texts together when they are read: an object can have a million faults, and the answer shows the first thousand. */
function lazily(type: FieldErrorType, path: FieldPath, body: () => string): FieldError {
  return {
    type,
    get field() {
      return path.toString()
    },
    get body() {
      return body()
    },
  }
}

export const fieldError = {
  required: (path: FieldPath, detail = '') => lazily('FieldValueRequired', path, () => withDetail('Required value', detail)),
  invalid: (path: FieldPath, value: unknown, detail: string) =>
    lazily('FieldValueInvalid', path, () => withDetail(`Invalid value: ${printValue(value)}`, detail)),
  typeInvalid: (path: FieldPath, value: unknown, detail: string) =>
    lazily('FieldValueTypeInvalid', path, () => withDetail(`Invalid value: ${printValue(value)}`, detail)),
  duplicate: (path: FieldPath, value: unknown) => lazily('FieldValueDuplicate', path, () => `Duplicate value: ${printValue(value)}`),
  notFound: (path: FieldPath, value: unknown) => lazily('FieldValueNotFound', path, () => `Not found: ${printValue(value)}`),
  forbidden: (path: FieldPath, detail: string) => lazily('FieldValueForbidden', path, () => withDetail('Forbidden', detail)),
  notSupported: (path: FieldPath, value: unknown, supported: readonly string[]) =>
    lazily('FieldValueNotSupported', path, () => {
      return `Unsupported value: ${printValue(value)}: supported values: ${supported.map((s) => JSON.stringify(s)).join(', ')}`
    }),
  tooLong: (path: FieldPath, maxLength: number) =>
    lazily('FieldValueTooLong', path, () => `Too long: may not be more than ${maxLength} ${maxLength === 1 ? 'byte' : 'bytes'}`),
  tooMany: (path: FieldPath, actual: number, max: number) => lazily('FieldValueTooMany', path, () => `Too many: ${actual}: must have at most ${max} items`),
}

/** Nobody reads more; an object of 3 MiB can have a million faults, whose description would be a hundred times its size. */
const mostErrors = 1_000

/**
 * The 422 that a list of field errors becomes: the first 1,000 of them, and how many more there are. `group` and `kind` are the object's.
 * Upstream: errors.NewInvalid, which has no such limit.
 */
export function invalid(of: { group: string; kind: string }, name: string, all: readonly FieldError[]): StatusError {
  const errors = all.length > mostErrors ? all.slice(0, mostErrors) : all
  // The message says each thing once; the causes repeat what several checks have found.
  const texts = [...new Set(errors.map((e) => `${e.field}: ${e.body}`))]
  if (all.length > mostErrors) texts.push(`and ${all.length - mostErrors} more errors`)
  const joined = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`
  const qualifiedKind = of.group ? `${of.kind}.${of.group}` : of.kind
  return new StatusError('Invalid', `${qualifiedKind} "${name}" is invalid: ${joined}`, {
    details: {
      name,
      ...(of.group ? { group: of.group } : {}),
      kind: of.kind,
      causes: errors.map((e) => ({ reason: e.type, message: e.body, field: e.field })),
    },
  })
}
