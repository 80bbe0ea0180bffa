/**
 * Bounds of what an evaluation can cost, before any data is seen (L1, pure): walks the checked expression, carrying sizes of values
 * and paths into the data, for which the caller's schema knows the largest sizes.
 * Kubernetes refuses rules by these numbers, so every detail follows upstream: cel-go checker/cost.go (v0.26), with the options that
 * Kubernetes sets (a presence test costs nothing).
 */
import type { CheckedExpression } from '../environment.ts'
import type { Call, Comprehension, CreateMap, Expression, Identifier, Select } from '../syntax/ast.ts'
import { accumulator } from '../syntax/operators.ts'
import { codePointCount } from '../text.ts'
import type { CelType } from '../types.ts'
import { dynType, isOptional } from '../types.ts'
import type { CallEstimate, CallEstimator, CostEstimate, EstimateNode, SizeEstimator } from './model.ts'
import { add, createListCost, createMapCost, createStructCost, fixed, multiply, selectCost, union, unknownSize } from './model.ts'
import { estimateStandardCall } from './standardEstimates.ts'

/** Estimators by overload id or function name; the id is asked first. */
export function estimateCost(checked: CheckedExpression, estimators: ReadonlyMap<string, CallEstimator>, sizes: SizeEstimator = () => undefined): CostEstimate {
  return new Estimation(checked, estimators, sizes).cost(checked.expression)
}

/** Sizes of the keys and values of a map, or of the indices and items of a list. */
interface EntrySize {
  readonly container: 'list' | 'map'
  readonly key: CostEstimate
  readonly value: CostEstimate
}

interface LocalVariable {
  readonly path: readonly string[] | undefined
  readonly size: CostEstimate | undefined
  readonly entry: EntrySize | undefined
}

const nothing = fixed(0)
/** Before the first of several is known. */
const emptyUnion: CostEstimate = { min: Number.POSITIVE_INFINITY, max: 0 }

const unionEntries = (a: EntrySize | undefined, b: EntrySize | undefined): EntrySize | undefined =>
  a && b && { container: a.container, key: union(a.key, b.key), value: union(a.value, b.value) }

function isScalar(type: CelType): boolean {
  if (isOptional(type)) return isScalar(type.parameters[0]!)
  return ['bool', 'double', 'duration', 'int', 'timestamp', 'uint'].includes(type.kind)
}

class Estimation {
  readonly #checked: CheckedExpression
  readonly #estimators: ReadonlyMap<string, CallEstimator>
  readonly #sizeEstimator: SizeEstimator
  readonly #paths = new Map<number, readonly string[]>()
  readonly #sizes = new Map<number, CostEstimate>()
  readonly #entries = new Map<number, EntrySize>()
  readonly #locals = new Map<string, LocalVariable[]>()

  constructor(checked: CheckedExpression, estimators: ReadonlyMap<string, CallEstimator>, sizes: SizeEstimator) {
    this.#checked = checked
    this.#estimators = estimators
    this.#sizeEstimator = sizes
  }

  cost(expression: Expression): CostEstimate {
    switch (expression.kind) {
      case 'literal':
        return nothing
      case 'identifier':
        return this.#identifier(expression)
      case 'select':
        return this.#select(expression)
      case 'call':
        return this.#call(expression)
      case 'list':
        return this.#list(expression)
      case 'map':
        return this.#map(expression)
      case 'struct':
        return add(this.#sum(expression.fields.map(({ value }) => value)), fixed(createStructCost))
      case 'comprehension':
        return this.#isBinding(expression) ? this.#binding(expression) : this.#comprehension(expression)
    }
  }

  #sum(expressions: readonly Expression[]): CostEstimate {
    return expressions.reduce((sum, expression) => add(sum, this.cost(expression)), nothing)
  }

  #type(expression: Expression): CelType {
    return this.#checked.types.get(expression.id) ?? dynType
  }

  #identifier(identifier: Identifier): CostEstimate {
    const name = identifier.name.replace(/^\./, '')
    const local = this.#local(name)
    const path = local ? local.path : [name]
    if (path) this.#paths.set(identifier.id, path)
    return fixed(selectCost)
  }

  #select(select: Select): CostEstimate {
    const reference = this.#checked.references.get(select.id)?.name
    if (reference !== undefined) {
      this.#paths.set(select.id, [reference])
      return fixed(selectCost)
    }
    const operand = this.cost(select.operand)
    if (select.testOnly) return operand
    const path = this.#path(select.operand)
    if (path) this.#paths.set(select.id, [...path, select.field])
    return ['map', 'object', 'parameter'].includes(this.#type(select.operand).kind) ? add(operand, fixed(selectCost)) : operand
  }

  #call(call: Call): CostEstimate {
    if (call.function === 'dyn' && !call.target) {
      const cost = this.cost(call.args[0]!)
      this.#copySizes(call, call.args[0]!)
      return add(fixed(1), cost)
    }
    const argCosts = call.args.map((arg) => this.cost(arg))
    const args = call.args.map((arg) => this.#node(arg))
    const { overloads = [], name = call.function } = this.#checked.references.get(call.id) ?? {}
    if (overloads.length === 0) return nothing
    // A namespaced function, such as `sets.contains`, has no receiver in spite of its dots.
    const receiver = call.target && name === call.function ? call.target : undefined
    const before = receiver ? this.cost(receiver) : nothing
    const target = receiver && this.#node(receiver)
    let cost = emptyUnion
    let size: CostEstimate | undefined
    for (const overload of overloads) {
      const estimate = this.#overload(call, name, overload, target, args, argCosts)
      cost = union(cost, estimate.cost)
      if (estimate.resultSize) size = size ? union(size, estimate.resultSize) : estimate.resultSize
      if (overload === 'index_list' || overload === 'index_map') size = this.#indexed(call, overload === 'index_list' ? '@items' : '@values')
      size ??= this.#size(call)
    }
    if (size) this.#sizes.set(call.id, size)
    return add(before, cost)
  }

  /** Where an item of an indexed container is, and how large. */
  #indexed(call: Call, step: string): CostEstimate | undefined {
    const [container] = call.args
    const path = this.#path(container!)
    if (path) this.#paths.set(call.id, [...path, step])
    return this.#entrySize(container!)?.value
  }

  #overload(call: Call, name: string, overload: string, target: EstimateNode | undefined, args: EstimateNode[], argCosts: CostEstimate[]): CallEstimate {
    const argSum = argCosts.reduce(add, nothing)
    const sizeOf = (node: EstimateNode): CostEstimate => node.size ?? this.#sizeEstimator(node) ?? unknownSize
    const estimator = this.#estimators.get(overload) ?? this.#estimators.get(name)
    const known = estimator?.({ overload, target, args, sizeOf })
    if (known) return { cost: add(known.cost, argSum), resultSize: known.resultSize }
    const unionEntrySizes = (a: Expression, b: Expression): void => this.#setEntrySize(call, unionEntries(this.#entrySize(a), this.#entrySize(b)))
    return estimateStandardCall({ call, overload, target, args, argCosts, argSum, unionEntrySizes })
  }

  #list(list: Expression & { kind: 'list' }): CostEstimate {
    const cost = this.#sum(list.elements)
    const item = list.elements.length === 0 ? nothing : list.elements.map((element) => this.#size(element) ?? unknownSize).reduce(union, emptyUnion)
    this.#setEntrySize(list, { container: 'list', key: fixed(1), value: item })
    return add(cost, fixed(createListCost))
  }

  #map(map: CreateMap): CostEstimate {
    const cost = this.#sum(map.entries.flatMap(({ key, value }) => [key, value]))
    const sizeOf = (pick: 'key' | 'value'): CostEstimate =>
      map.entries.length === 0 ? nothing : map.entries.map((entry) => this.#size(entry[pick]) ?? unknownSize).reduce(union, emptyUnion)
    this.#setEntrySize(map, { container: 'map', key: sizeOf('key'), value: sizeOf('value') })
    return add(cost, fixed(createMapCost))
  }

  #comprehension(loop: Comprehension): CostEstimate {
    const before = add(this.cost(loop.iterRange), this.cost(loop.accuInit))
    this.#push(loop.accuVar, this.#localFor(loop.accuInit))
    if (loop.iterVar2 === undefined) this.#push(loop.iterVar, this.#iterated(loop.iterRange, 'single'))
    else {
      this.#push(loop.iterVar, this.#iterated(loop.iterRange, 'key'))
      this.#push(loop.iterVar2, this.#iterated(loop.iterRange, 'value'))
    }
    const each = add(this.cost(loop.loopCondition), this.cost(loop.loopStep))
    this.#pop(loop.iterVar)
    if (loop.iterVar2 !== undefined) this.#pop(loop.iterVar2)
    const result = this.cost(loop.result)
    this.#pop(loop.accuVar)
    const count = this.#size(loop.iterRange) ?? unknownSize
    if (loop.accuInit.kind === 'literal') this.#setSize(loop, this.#size(loop.accuInit))
    else if (loop.accuInit.kind === 'list' || loop.accuInit.kind === 'map') {
      this.#setSize(loop, count)
      this.#setEntrySize(loop, this.#entrySize(loop.loopStep))
    }
    return add(add(before, result), multiply(count, each))
  }

  #isBinding({ iterRange, loopCondition, accuVar }: Comprehension): boolean {
    const empty = iterRange.kind === 'list' && iterRange.elements.length === 0
    return empty && loopCondition.kind === 'literal' && loopCondition.value === false && accuVar !== accumulator
  }

  #binding(loop: Comprehension): CostEstimate {
    const before = add(this.cost(loop.iterRange), this.cost(loop.accuInit))
    this.#push(loop.accuVar, this.#localFor(loop.accuInit))
    const result = this.cost(loop.result)
    this.#pop(loop.accuVar)
    this.#copySizes(loop, loop.result)
    return add(before, result)
  }

  #localFor(expression: Expression): LocalVariable {
    return { path: this.#path(expression), size: this.#size(expression), entry: this.#entrySize(expression) }
  }

  /** A loop variable: the item of a list or the key of a map when it is the only one. */
  #iterated(range: Expression, role: 'single' | 'key' | 'value'): LocalVariable {
    const entry = this.#entrySize(range)
    const isList = (entry?.container ?? this.#type(range).kind) === 'list'
    const holdsValue = role === 'value' || (role === 'single' && isList)
    const step = holdsValue ? (isList ? '@items' : '@values') : isList ? '@indices' : '@keys'
    // A range that is no part of a variable gives a path of the step alone, as upstream's does: no schema knows it.
    return { path: [...(this.#path(range) ?? []), step], size: holdsValue ? entry?.value : entry?.key, entry: undefined }
  }

  #local(name: string): LocalVariable | undefined {
    return this.#locals.get(name)?.at(-1)
  }
  #push(name: string, variable: LocalVariable): void {
    const stack = this.#locals.get(name)
    if (stack) stack.push(variable)
    else this.#locals.set(name, [variable])
  }
  #pop(name: string): void {
    this.#locals.get(name)?.pop()
  }

  #path(expression: Expression): readonly string[] | undefined {
    if (expression.kind === 'identifier') {
      const local = this.#local(expression.name)
      if (local) return local.path
    }
    return this.#paths.get(expression.id)
  }

  #node(expression: Expression): EstimateNode {
    const path = this.#path(expression)
    return { path: path?.[0] === accumulator ? undefined : path, type: this.#type(expression), expression, size: this.#size(expression) }
  }

  #setSize(expression: Expression, size: CostEstimate | undefined): void {
    if (size) this.#sizes.set(expression.id, size)
  }

  #copySizes(to: Expression, from: Expression): void {
    this.#setSize(to, this.#size(from))
    this.#setEntrySize(to, this.#entrySize(from))
  }

  /** The size of a value where the expression, the schema or the type tells it. */
  #size(expression: Expression): CostEstimate | undefined {
    const known = this.#sizes.get(expression.id) ?? literalSize(expression)
    if (known) return known
    const type = this.#type(expression)
    const estimated = this.#sizeEstimator({ path: this.#path(expression), type })
    if (estimated) {
      this.#sizes.set(expression.id, estimated)
      return estimated
    }
    if (isScalar(type)) return fixed(1)
    return expression.kind === 'identifier' ? this.#local(expression.name)?.size : undefined
  }

  #setEntrySize(expression: Expression, entry: EntrySize | undefined): void {
    if (entry) this.#entries.set(expression.id, entry)
  }

  #entrySize(expression: Expression): EntrySize | undefined {
    const known = this.#entries.get(expression.id)
    return known ?? (expression.kind === 'identifier' ? this.#local(expression.name)?.entry : undefined)
  }
}

function literalSize(expression: Expression): CostEstimate | undefined {
  switch (expression.kind) {
    case 'literal':
      if (typeof expression.value === 'string') return fixed(codePointCount(expression.value))
      return fixed(expression.value instanceof Uint8Array ? expression.value.length : 1)
    case 'list':
      return fixed(expression.elements.length)
    case 'map':
      return fixed(expression.entries.length)
    default:
      return undefined
  }
}
