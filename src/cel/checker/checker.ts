/**
 * Gives every node of an expression a type and every call its overloads (L1, pure), and lists what does not fit.
 * Upstream: cel-go checker/checker.go, errors.go (v0.26); the messages are upstream's, as tools and users match them.
 */
import type { FunctionDeclaration, Overload } from '../declarations.ts'
import type { CheckedExpression, Issue, Reference } from '../environment.ts'
import type { Call, Comprehension, CreateList, CreateMap, CreateStruct, Expression, Select } from '../syntax/ast.ts'
import { optionalSelect } from '../syntax/operators.ts'
import { qualifiedName } from '../syntax/parser.ts'
import type { CelType } from '../types.ts'
import {
  boolType,
  bytesType,
  doubleType,
  dynType,
  errorType,
  formatType,
  intType,
  isDyn,
  isOptional,
  listType,
  mapType,
  nullType,
  optionalType,
  stringType,
  typeName,
  typeParameter,
  typesEqual,
  uintType,
} from '../types.ts'
import type { Value } from '../values.ts'
import { Double, Uint } from '../values.ts'
import { assign, Mapping, mostGeneral, substitute } from './unify.ts'

/** What a name outside the expression means: a variable, or a constant such as a type. */
export interface NameDeclaration {
  readonly type: CelType
  readonly value?: Value | undefined
}

export interface Declarations {
  readonly names: { get(name: string): NameDeclaration | undefined }
  readonly functions: ReadonlyMap<string, FunctionDeclaration>
  /** Whether items of a list literal, and keys and values of a map literal, must be of one type. */
  readonly homogeneousLiterals: boolean
}

/** Checks an expression. Issues are in the order in which they are found. */
export function check(source: string, expression: Expression, declarations: Declarations): { checked: CheckedExpression; issues: Issue[] } {
  const checker = new Checker(declarations)
  checker.check(expression)
  const types = checker.finalTypes()
  const checked = { source, expression, resultType: types.get(expression.id)!, types, references: checker.references }
  return { checked, issues: checker.issues }
}

interface Scope {
  readonly name: string
  readonly type: CelType
  readonly outer: Scope | undefined
}

function literalType(value: Value): CelType {
  if (value === null) return nullType
  if (typeof value === 'string') return stringType
  if (typeof value === 'boolean') return boolType
  if (value instanceof Double) return doubleType
  if (value instanceof Uint) return uintType
  return value instanceof Uint8Array ? bytesType : intType
}

const unwrapOptional = (type: CelType): { type: CelType; optional: boolean } =>
  isOptional(type) ? { type: type.parameters[0]!, optional: true } : { type, optional: false }

class Checker {
  readonly issues: Issue[] = []
  readonly references = new Map<number, Reference>()
  readonly #types = new Map<number, CelType>()
  readonly #declarations: Declarations
  readonly #mapping = new Mapping()
  #scope: Scope | undefined
  #freeTypes = 0

  constructor(declarations: Declarations) {
    this.#declarations = declarations
  }

  finalTypes(): Map<number, CelType> {
    return new Map([...this.#types].map(([id, type]) => [id, substitute(this.#mapping, type, 'dyn')]))
  }

  check(expression: Expression): CelType {
    const type = this.#typeOf(expression)
    this.#types.set(expression.id, type)
    return type
  }

  #typeOf(expression: Expression): CelType {
    switch (expression.kind) {
      case 'literal':
        return literalType(expression.value)
      case 'identifier':
        return this.#name(expression.id, expression.name) ?? this.#undeclared(expression.offset, expression.name)
      case 'select':
        return this.#select(expression)
      case 'call':
        return expression.function === optionalSelect ? this.#optionalSelect(expression) : this.#call(expression)
      case 'list':
        return this.#list(expression)
      case 'map':
        return this.#map(expression)
      case 'struct':
        return this.#struct(expression)
      case 'comprehension':
        return this.#comprehension(expression)
    }
  }

  #report(offset: number, message: string): CelType {
    this.issues.push({ message, offset })
    return errorType
  }
  #undeclared(offset: number, name: string): CelType {
    return this.#report(offset, `undeclared reference to '${name}' (in container '')`)
  }
  #mismatch(offset: number, wanted: CelType, found: CelType): CelType {
    return this.#report(offset, `expected type '${formatType(wanted)}' but found '${formatType(found)}'`)
  }
  #freeType(): CelType {
    return typeParameter(`_var${this.#freeTypes++}`)
  }
  #assign(source: CelType, target: CelType): boolean {
    return assign(this.#mapping, [source], [target])
  }

  /** The type of a declared name, which is then what the node refers to. */
  #name(id: number, written: string): CelType | undefined {
    const absolute = written.startsWith('.')
    const name = absolute ? written.slice(1) : written
    for (let scope = absolute ? undefined : this.#scope; scope; scope = scope.outer) {
      if (scope.name === name) {
        this.references.set(id, { name })
        return scope.type
      }
    }
    const declared = this.#declarations.names.get(name)
    // A leading dot in the reference keeps the planner from finding a loop variable of the same name.
    if (declared) this.references.set(id, { name: written, value: declared.value })
    return declared?.type
  }

  #select(select: Select): CelType {
    const qualified = qualifiedName(select)
    const declared = qualified === undefined ? undefined : this.#name(select.id, qualified)
    if (declared) return declared
    const type = this.#field(select.offset, select.operand, select.field, false)
    return select.testOnly ? boolType : type
  }

  #field(offset: number, operand: Expression, field: string, asOptional: boolean): CelType {
    const { type, optional } = unwrapOptional(substitute(this.#mapping, this.check(operand), 'keep'))
    const result = this.#fieldType(offset, type, field)
    return substitute(this.#mapping, optional || asOptional ? optionalType(result) : result, 'keep')
  }

  #fieldType(offset: number, type: CelType, field: string): CelType {
    switch (type.kind) {
      case 'map':
        return type.value
      case 'object':
        return type.fields.get(field) ?? this.#report(offset, `undefined field '${field}'`)
      case 'parameter':
        this.#assign(dynType, type)
        return dynType
      default:
        if (!isDyn(type)) this.#report(offset, `type '${formatType(type)}' does not support field selection`)
        return dynType
    }
  }

  #optionalSelect(call: Call): CelType {
    const [operand, field] = call.args as [Expression, Expression]
    this.references.set(call.id, { overloads: ['select_optional_field'] })
    this.#types.set(field.id, stringType)
    return this.#field(call.offset, operand, field.kind === 'literal' ? String(field.value) : '', true)
  }

  #call(call: Call): CelType {
    const args = call.args.map((arg) => this.check(arg))
    const { functions } = this.#declarations
    if (!call.target) {
      const name = call.function.startsWith('.') ? call.function.slice(1) : call.function
      const declaration = functions.get(name)
      return declaration ? this.#resolve(call, declaration, args, false) : this.#undeclared(call.offset, call.function)
    }
    const prefix = qualifiedName(call.target)
    const namespaced = prefix === undefined ? undefined : functions.get(`${prefix.replace(/^\./, '')}.${call.function}`)
    if (namespaced) return this.#resolve(call, namespaced, args, false)
    const target = this.check(call.target)
    const declaration = functions.get(call.function)
    return declaration ? this.#resolve(call, declaration, [target, ...args], true) : this.#undeclared(call.offset, call.function)
  }

  /** Finds the overloads that the arguments fit, and the type of their result: dyn when they differ. */
  #resolve(call: Call, declaration: FunctionDeclaration, args: readonly CelType[], member: boolean): CelType {
    if (declaration.name === '_&&_' || declaration.name === '_||_') return this.#logical(call, declaration, args)
    const fitting: string[] = []
    let result: CelType | undefined
    for (const overload of declaration.overloads) {
      if (overload.member !== member) continue
      const { parameters, result: declared } = this.#instantiate(overload)
      if (!assign(this.#mapping, args, parameters)) continue
      fitting.push(overload.id)
      const type = substitute(this.#mapping, declared, 'keep')
      if (result === undefined) result = type
      else if (result.kind !== 'dyn' && !typesEqual(result, type)) result = dynType
    }
    if (result === undefined) {
      const types = args.map((arg) => formatType(substitute(this.#mapping, arg, 'dyn')))
      const signature = member ? `${types[0]}.(${types.slice(1).join(', ')})` : `(${types.join(', ')})`
      return this.#report(call.offset, `found no matching overload for '${declaration.name}' applied to '${signature}'`)
    }
    this.references.set(call.id, { name: declaration.name, overloads: fitting })
    return result
  }

  #logical(call: Call, declaration: FunctionDeclaration, args: readonly CelType[]): CelType {
    let ok = true
    args.forEach((arg, i) => {
      if (this.#assign(arg, boolType)) return
      this.#mismatch(call.args[i]!.offset, boolType, arg)
      ok = false
    })
    if (!ok) return errorType
    this.references.set(call.id, { name: declaration.name, overloads: [declaration.overloads[0]!.id] })
    return boolType
  }

  /** The overload's types with fresh type parameters. */
  #instantiate(overload: Overload): Pick<Overload, 'parameters' | 'result'> {
    if (overload.typeParameters.length === 0) return overload
    const fresh = new Mapping(overload.typeParameters.map((name) => [name, this.#freeType()]))
    return { parameters: overload.parameters.map((type) => substitute(fresh, type, 'keep')), result: substitute(fresh, overload.result, 'keep') }
  }

  #join(offset: number, previous: CelType | undefined, current: CelType): CelType {
    if (previous === undefined) return current
    if (this.#assign(previous, current)) return mostGeneral(previous, current)
    return this.#declarations.homogeneousLiterals ? this.#mismatch(offset, previous, current) : dynType
  }

  /** The type of a `?x` entry is what the optional holds. */
  #entryType(value: Expression, type: CelType, wantsOptional: boolean): CelType {
    if (!wantsOptional) return type
    const inner = unwrapOptional(type)
    if (!inner.optional && !isDyn(type)) this.#mismatch(value.offset, optionalType(type), type)
    return inner.type
  }

  #list(list: CreateList): CelType {
    let element: CelType | undefined
    list.elements.forEach((item, i) => {
      const type = this.#entryType(item, this.check(item), list.optionalIndices.includes(i))
      element = this.#join(item.offset, element, type)
    })
    return listType(element ?? this.#freeType())
  }

  #map(map: CreateMap): CelType {
    let key: CelType | undefined
    let value: CelType | undefined
    for (const entry of map.entries) {
      key = this.#join(entry.key.offset, key, this.check(entry.key))
      value = this.#join(entry.value.offset, value, this.#entryType(entry.value, this.check(entry.value), entry.optional))
    }
    return mapType(key ?? this.#freeType(), value ?? this.#freeType())
  }

  #struct(struct: CreateStruct): CelType {
    const named = this.#name(struct.id, struct.typeName)
    let type: CelType = errorType
    if (!named) return this.#undeclared(struct.offset, struct.typeName)
    if (named.kind !== 'type') this.#report(struct.offset, `'${typeName(named)}' is not a type`)
    else if (named.of?.kind !== 'object') this.#report(struct.offset, `'${named.of ? typeName(named.of) : 'type'}' is not a message type`)
    else type = named.of
    for (const field of struct.fields) {
      const value = this.#entryType(field.value, this.check(field.value), field.optional)
      if (type.kind !== 'object') continue
      const declared = type.fields.get(field.name)
      if (!declared) this.#report(field.offset, `undefined field '${field.name}'`)
      else if (!this.#assign(value, declared)) {
        this.#report(field.offset, `expected type of field '${field.name}' is '${formatType(declared)}' but provided type is '${formatType(value)}'`)
      }
    }
    return type
  }

  #comprehension(loop: Comprehension): CelType {
    const range = substitute(this.#mapping, this.check(loop.iterRange), 'keep')
    const accumulated = this.check(loop.accuInit)
    const outer = this.#scope
    this.#scope = { name: loop.accuVar, type: accumulated, outer }
    const accumulatorScope = this.#scope
    const [first, second] = this.#loopTypes(range, loop)
    this.#scope = { name: loop.iterVar, type: first, outer: this.#scope }
    if (loop.iterVar2 !== undefined) this.#scope = { name: loop.iterVar2, type: second, outer: this.#scope }
    const condition = this.check(loop.loopCondition)
    if (!this.#assign(boolType, condition)) this.#mismatch(loop.loopCondition.offset, boolType, condition)
    const step = this.check(loop.loopStep)
    if (!this.#assign(accumulated, step)) this.#mismatch(loop.loopStep.offset, accumulated, step)
    this.#scope = accumulatorScope
    const result = this.check(loop.result)
    this.#scope = outer
    return substitute(this.#mapping, result, 'keep')
  }

  /** The types of the loop's variables: items or keys; indices and items, or keys and values, when there are two. */
  #loopTypes(range: CelType, loop: Comprehension): [CelType, CelType] {
    switch (range.kind) {
      case 'list':
        return loop.iterVar2 === undefined ? [range.element, errorType] : [intType, range.element]
      case 'map':
        return [range.key, range.value]
      case 'dyn':
      case 'error':
      case 'parameter':
        this.#assign(dynType, range)
        return [dynType, dynType]
      default:
        this.#report(loop.iterRange.offset, `expression of type '${formatType(range)}' cannot be range of a comprehension (must be list, map, or dynamic)`)
        return [errorType, errorType]
    }
  }
}
