/**
 * How functions are declared (L1, pure): overloads written as signatures, each with the code that runs it, gathered into libraries.
 * Upstream: cel-go common/decls/decls.go, cel/library.go (v0.26).
 */
import { bareMap } from '#base/bareMap'

import type { CallCost, CallEstimator } from './cost/model.ts'
import type { Macro } from './syntax/macro.ts'
import type { CelType } from './types.ts'
import {
  boolType,
  bytesType,
  doubleType,
  durationType,
  dynType,
  intType,
  listType,
  mapType,
  nullType,
  opaqueType,
  stringType,
  timestampType,
  typeParameter,
  typeType,
  uintType,
} from './types.ts'
import type { Value } from './values.ts'

export interface Overload {
  readonly id: string
  /** The receiver first, when it is a member. */
  readonly parameters: readonly CelType[]
  readonly result: CelType
  /** Called as `receiver.function(...)`. */
  readonly member: boolean
  readonly typeParameters: readonly string[]
  /** Gets arguments of the declared outermost types. @throws EvaluationError */
  readonly invoke: Invoke
  /** Makes an `invoke` for one place in a program, which may remember what it worked out of its arguments. */
  readonly prepare?: (() => Invoke) | undefined
}

type Invoke = (...args: never[]) => Value

export interface FunctionDeclaration {
  readonly name: string
  readonly overloads: readonly Overload[]
}

/** A set of functions, macros and costs that belong together. */
export interface Library {
  readonly functions?: readonly FunctionDeclaration[]
  readonly macros?: readonly Macro[]
  /** Types that expressions may name, such as `net.IP`. */
  readonly typeNames?: readonly CelType[]
  /** What calls cost at run time, by function name or by overload id; the name is asked first. */
  readonly callCosts?: Readonly<Record<string, CallCost>>
  /** The bounds of the same, known before any data is. */
  readonly callEstimates?: Readonly<Record<string, CallEstimator>>
}

export const declare = (name: string, ...overloads: Overload[]): FunctionDeclaration => ({ name, overloads })

/** A function called as `name(...)`. The signature is written `(list(T), int) -> optional(T)`. */
export const overload = (id: string, signature: string, invoke: Invoke): Overload => makeOverload(id, signature, false, invoke)

/** A function called as `receiver.name(...)`; the receiver's type comes first in the signature. */
export const member = (id: string, signature: string, invoke: Invoke): Overload => makeOverload(id, signature, true, invoke)

/** An overload whose code is generated for each call site. */
export const prepared = (make: typeof overload, id: string, signature: string, prepare: () => Invoke): Overload => ({
  ...make(id, signature, prepare()),
  prepare,
})

function makeOverload(id: string, signature: string, isMember: boolean, invoke: Invoke): Overload {
  const names = new Set<string>()
  const reader = new SignatureReader(signature, names)
  const parameters = reader.parameters()
  reader.take('->')
  const result = reader.type()
  reader.end()
  return { id, parameters, result, member: isMember, typeParameters: [...names], invoke }
}

const namedTypes: Readonly<Record<string, CelType>> = bareMap({
  bool: boolType,
  int: intType,
  uint: uintType,
  double: doubleType,
  string: stringType,
  bytes: bytesType,
  null: nullType,
  timestamp: timestampType,
  duration: durationType,
  dyn: dynType,
  type: typeType(),
})

/** Reads `(string, list(T)) -> bool`. Single capitals are type parameters; any other unknown name is an opaque type of that name. */
class SignatureReader {
  readonly #signature: string
  readonly #words: readonly string[]
  readonly #parameters: Set<string>
  #next = 0

  constructor(signature: string, parameters: Set<string>) {
    this.#signature = signature
    this.#words = signature.match(/[\w.]+|->|[(),]/g) ?? []
    this.#parameters = parameters
  }
  take(word: string): void {
    if (this.#words[this.#next++] !== word) throw new Error(`bad signature ${this.#signature}: wanted ${word} as word ${this.#next}`)
  }
  end(): void {
    if (this.#next !== this.#words.length) throw new Error(`bad signature ${this.#signature}: ends too late`)
  }
  parameters(): CelType[] {
    this.take('(')
    const list: CelType[] = []
    while (this.#words[this.#next] !== ')') {
      list.push(this.type())
      if (this.#words[this.#next] !== ',') break
      this.#next += 1
    }
    this.take(')')
    return list
  }
  type(): CelType {
    const name = this.#words[this.#next++]!
    const parameters = this.#words[this.#next] === '(' ? this.parameters() : []
    if (/^[A-Z]$/.test(name)) {
      this.#parameters.add(name)
      return typeParameter(name)
    }
    if (name === 'list') return listType(parameters[0] ?? dynType)
    if (name === 'map') return mapType(parameters[0] ?? dynType, parameters[1] ?? dynType)
    if (name === 'type') return typeType(parameters[0])
    return namedTypes[name] ?? opaqueType(name === 'optional' ? 'optional_type' : name, ...parameters)
  }
}
