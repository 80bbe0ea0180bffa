/**
 * Field paths and field errors (L1), as validation reports them. Upstream: apimachinery/pkg/util/validation/field (v1.36).
 */
import { stringifyExactly } from './exactIntegers.ts'
import { StatusError } from './status.ts'

/**
 * A path such as `spec.containers[0].env[KEY].name`. Immutable; children share their parents. Nearly all of them are never shown, so the text
 * is put together when it is asked for.
 */
export class FieldPath {
  readonly #parent: FieldPath | undefined
  readonly #step: string | number
  readonly #isKey: boolean

  protected constructor(parent: FieldPath | undefined, step: string | number, isKey = false) {
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

  /** The path that this one and its relatives begin with. */
  get root(): FieldPath {
    let path: FieldPath = this
    while (path.#parent) path = path.#parent
    return path
  }

  toString(): string {
    const parent = this.#parent?.toString() ?? ''
    if (this.#isKey || typeof this.#step === 'number') return `${parent}[${this.#step}]`
    return parent === '' ? this.#step : `${parent}.${this.#step}`
  }
}

/** Validation stops when an object has more faults than this: each further one takes time, and no answer shows it. */
const mostCollected = 20_000

/** Ends a validation early. */
class TooManyFaults extends Error {}

/** The root of the paths of one validation, which counts its faults. */
class CountingRoot extends FieldPath {
  readonly faults: FieldError[] = []

  constructor() {
    super(undefined, '')
  }

  note(fault: FieldError): void {
    this.faults.push(fault)
    if (this.faults.length > mostCollected) throw new TooManyFaults('the object has too many faults')
  }
}

/** Runs a validation whose paths begin with the given root. It is stopped when the object has too many faults: the first ones are the result then. */
export function limitedFaults(validate: (root: FieldPath) => readonly FieldError[]): readonly FieldError[] {
  const root = new CountingRoot()
  try {
    return validate(root)
  } catch (error) {
    if (error instanceof TooManyFaults) return root.faults
    throw error
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
  return typeof value === 'object' ? stringifyExactly(value) : String(value)
}

const withDetail = (head: string, detail: string) => (detail ? `${head}: ${detail}` : head)

/** Puts the texts together when they are read: an object can have a million faults, and the answer shows the first thousand. */
function lazily(type: FieldErrorType, path: FieldPath, body: () => string): FieldError {
  const fault: FieldError = {
    type,
    get field() {
      return path.toString()
    },
    get body() {
      return body()
    },
  }
  const { root } = path
  if (root instanceof CountingRoot) root.note(fault)
  return fault
}

export const fieldError = {
  required: (path: FieldPath, detail = '') => lazily('FieldValueRequired', path, () => withDetail('Required value', detail)),
  invalid: (path: FieldPath, value: unknown, detail: string) =>
    lazily('FieldValueInvalid', path, () => withDetail(`Invalid value: ${printValue(value)}`, detail)),
  /** Does not show the value. Upstream: field.OmitValueType. */
  invalidWithoutValue: (path: FieldPath, detail: string) => lazily('FieldValueInvalid', path, () => `Invalid value: ${detail}`),
  typeInvalid: (path: FieldPath, value: unknown, detail: string) =>
    lazily('FieldValueTypeInvalid', path, () => withDetail(`Invalid value: ${printValue(value)}`, detail)),
  duplicate: (path: FieldPath, value: unknown) => lazily('FieldValueDuplicate', path, () => `Duplicate value: ${printValue(value)}`),
  notFound: (path: FieldPath, value: unknown, detail = '') => lazily('FieldValueNotFound', path, () => withDetail(`Not found: ${printValue(value)}`, detail)),
  forbidden: (path: FieldPath, detail: string) => lazily('FieldValueForbidden', path, () => withDetail('Forbidden', detail)),
  notSupported: (path: FieldPath, value: unknown, supported: readonly string[]) =>
    lazily('FieldValueNotSupported', path, () => {
      return `Unsupported value: ${printValue(value)}: supported values: ${supported.map((s) => JSON.stringify(s)).join(', ')}`
    }),
  tooLong: (path: FieldPath, maxLength: number) =>
    lazily('FieldValueTooLong', path, () => `Too long: may not be more than ${maxLength} ${maxLength === 1 ? 'byte' : 'bytes'}`),
  tooMany: (path: FieldPath, actual: number, max: number) => lazily('FieldValueTooMany', path, () => `Too many: ${actual}: must have at most ${max} items`),
}

/** The limit of faults in one message: an object of 3 MiB can have a million faults, and their texts would be a hundred times its size. */
const mostErrors = 1_000
/** Nor longer texts: a fault may show a whole list, and each item of that list may have one. */
const mostCharacters = 1_000_000

/**
 * The 422 that a list of field errors becomes: the first 1,000 of them, and how many more there are. `group` and `kind` are the object's.
 * Upstream: errors.NewInvalid, which has no such limit.
 */
export function invalid(of: { group: string; kind: string }, name: string, all: readonly FieldError[]): StatusError {
  const causes: { reason: FieldErrorType; message: string; field: string }[] = []
  // The message lists each error once; the causes repeat errors that several checks found.
  const texts = new Set<string>()
  let characters = 0
  for (const { type, field, body } of all) {
    if (causes.length >= mostErrors || characters > mostCharacters) break
    causes.push({ reason: type, message: body, field })
    texts.add(`${field}: ${body}`)
    characters += body.length
  }
  if (all.length > causes.length) texts.add(`and ${all.length > mostCollected ? 'at least ' : ''}${all.length - causes.length} more errors`)
  const joined = texts.size === 1 ? [...texts][0] : `[${[...texts].join(', ')}]`
  const qualifiedKind = of.group ? `${of.kind}.${of.group}` : of.kind
  return new StatusError('Invalid', `${qualifiedKind} "${name}" is invalid: ${joined}`, {
    details: { name, ...(of.group ? { group: of.group } : {}), kind: of.kind, causes },
  })
}
