/**
 * Turns a checked expression into nested functions, once, so that evaluating it looks nothing up (L1, pure).
 * Literals of constants are built here; costs follow upstream's: 1 for a variable, a field and an item, nothing for the variable
 * when it stands alone as a branch of ?: or as an index, nothing for logic, whatever a function says for calls.
 * Upstream: cel-go interpreter/planner.go, decorators.go (with optimization on), runtimecost.go (v0.26).
 */
import type { CallCost } from '../cost/model.ts'
import { createListCost, createMapCost, createStructCost, selectCost } from '../cost/model.ts'
import type { FunctionDeclaration, Overload } from '../declarations.ts'
import type { CheckedExpression, EvaluateOptions, EvaluationResult, Program } from '../environment.ts'
import { withBoundedPatterns } from '../regularExpression.ts'
import type { Call, Comprehension, CreateList, CreateMap, CreateStruct, Expression, Identifier, Select } from '../syntax/ast.ts'
import * as operators from '../syntax/operators.ts'
import type { Value } from '../values.ts'
import { ArrayList, ConstructedObject, EvaluationError, HashMap, ListValue, mapKey, Optional } from '../values.ts'
import { index, isSet, optionalIndex, optionalSelect, select } from './attributes.ts'
import { planCall } from './calls.ts'
import type { LoopPlanner } from './comprehensions.ts'
import { isBinding, planBinding, planComprehension, readSlot } from './comprehensions.ts'
import type { Evaluate, Frame } from './frame.ts'
import { absorbed, charge, noSuchOverload } from './frame.ts'

export interface Functions {
  readonly functions: ReadonlyMap<string, FunctionDeclaration>
  readonly callCosts: ReadonlyMap<string, CallCost>
}

/** Plans a program. */
export function planProgram(checked: CheckedExpression, functions: Functions): Program {
  const planner = new Planner(checked, functions)
  const evaluate = planner.plan(checked.expression)
  return { evaluate: (activation, options) => run(evaluate, planner.slotCount, activation, options) }
}

function run(evaluate: Evaluate, slots: number, activation: Frame['activation'], options: EvaluateOptions = {}): EvaluationResult {
  const frame: Frame = {
    activation,
    slots: new Array(slots),
    costLimit: options.costLimit ?? Number.POSITIVE_INFINITY,
    cost: 0,
    iterations: 0,
    isInterrupted: options.isInterrupted,
  }
  try {
    return { value: withBoundedPatterns(() => evaluate(frame)), cost: frame.cost }
  } catch (error) {
    if (error instanceof EvaluationError) return { error, cost: frame.cost }
    // A text or a nesting that the platform cannot hold is the expression's fault, not the server's.
    if (error instanceof RangeError) return { error: new EvaluationError(`evaluation exceeds a limit: ${error.message}`, true), cost: frame.cost }
    throw error
  }
}

const foldable = new Set(['bool', 'bytes', 'double', 'duration', 'int', 'string', 'timestamp', 'uint', 'type', 'dyn'])

class Planner implements LoopPlanner {
  readonly #checked: CheckedExpression
  readonly #functions: Functions
  #scope = new Map<string, number>()
  slotCount = 0

  constructor(checked: CheckedExpression, functions: Functions) {
    this.#checked = checked
    this.#functions = functions
  }

  slot(): number {
    return this.slotCount++
  }

  within<T>(names: ReadonlyArray<readonly [string, number]>, plan: () => T): T {
    const outer = this.#scope
    this.#scope = new Map([...outer, ...names])
    const planned = plan()
    this.#scope = outer
    return planned
  }

  plan(expression: Expression): Evaluate {
    return this.#plan(expression, selectCost)
  }

  /** @param rootCost what a variable at the root of the expression costs. */
  #plan(expression: Expression, rootCost: number): Evaluate {
    const constant = this.#constant(expression)
    if (constant !== undefined) return () => constant
    switch (expression.kind) {
      case 'identifier':
        return this.#variable(this.#checked.references.get(expression.id)?.name ?? expression.name, rootCost)
      case 'select':
        return this.#select(expression, rootCost)
      case 'call':
        return this.#call(expression, rootCost)
      case 'list':
        return this.#list(expression)
      case 'map':
        return this.#map(expression)
      case 'struct':
        return this.#struct(expression)
      case 'comprehension':
        return this.#comprehension(expression)
      case 'literal':
        return () => expression.value
    }
  }

  /** The value of an expression that needs no data, when building it cannot fail. */
  #constant(expression: Expression): Value | undefined {
    switch (expression.kind) {
      case 'literal':
        return expression.value
      case 'identifier':
      case 'select':
        return this.#checked.references.get(expression.id)?.value
      case 'list': {
        const items = expression.optionalIndices.length > 0 ? [undefined] : expression.elements.map((element) => this.#constant(element))
        return items.includes(undefined) ? undefined : new ArrayList(items as Value[])
      }
      case 'map':
        return this.#constantMap(expression)
      case 'call':
        return foldable.has(expression.function) && !expression.target && expression.args.length === 1 ? this.#converted(expression) : undefined
      default:
        return undefined
    }
  }

  #constantMap({ entries }: CreateMap): Value | undefined {
    const map = new HashMap()
    for (const entry of entries) {
      const key = entry.optional ? undefined : this.#constant(entry.key)
      const value = this.#constant(entry.value)
      if (key === undefined || value === undefined || mapKey(key) === undefined) return undefined
      map.set(key, value)
    }
    return map
  }

  #converted(call: Call): Value | undefined {
    const argument = this.#constant(call.args[0]!)
    if (argument === undefined) return undefined
    try {
      return planCall(this.#overloads(call), [() => argument], 0)({ activation: new Map(), slots: [], costLimit: 0, cost: 0, iterations: 0 })
    } catch (error) {
      absorbed(error)
      return undefined
    }
  }

  #variable(name: string, cost: number): Evaluate {
    const slot = this.#scope.get(name)
    if (slot !== undefined) {
      return (frame) => {
        charge(frame, cost)
        return readSlot(frame, slot)
      }
    }
    const global = name.startsWith('.') ? name.slice(1) : name
    return (frame) => {
      charge(frame, cost)
      const value = frame.activation.get(global)
      if (value === undefined) throw new EvaluationError(`no such attribute(s): ${global}`)
      return value
    }
  }

  /** Something whose fields or items are read; a value that is no variable itself costs as much as one. */
  #operand(expression: Expression, rootCost: number): Evaluate {
    const planned = this.#plan(expression, rootCost)
    if (isAttribute(expression)) return planned
    return (frame) => {
      const value = planned(frame)
      charge(frame, rootCost)
      return value
    }
  }

  #select(expression: Select, rootCost: number): Evaluate {
    const reference = this.#checked.references.get(expression.id)?.name
    if (reference !== undefined) return this.#variable(reference, rootCost)
    const { field, testOnly } = expression
    const operand = this.#operand(expression.operand, rootCost)
    if (testOnly) return (frame) => isSet(operand(frame), field)
    return (frame) => {
      const value = operand(frame)
      charge(frame, selectCost)
      return select(value, field)
    }
  }

  #call(call: Call, rootCost: number): Evaluate {
    const [first, second, third] = call.args as [Expression, Expression, Expression]
    switch (call.function) {
      case operators.logicalAnd:
        return planLogical(this.plan(first), this.plan(second), false)
      case operators.logicalOr:
        return planLogical(this.plan(first), this.plan(second), true)
      case operators.conditional:
        return planConditional(this.plan(first), this.#plan(second, 0), this.#plan(third, 0))
      case operators.notStrictlyFalse:
        return planNotStrictlyFalse(this.plan(first))
      case operators.index:
        return this.#indexed(call, index, rootCost)
      case operators.optionalIndex:
        return this.#indexed(call, optionalIndex, rootCost)
      case operators.optionalSelect: {
        const operand = this.#operand(first, rootCost)
        const field = second.kind === 'literal' ? String(second.value) : ''
        return (frame) => {
          const value = operand(frame)
          charge(frame, selectCost)
          return optionalSelect(value, field)
        }
      }
      default:
        return this.#ordinaryCall(call)
    }
  }

  #indexed(call: Call, read: (value: Value, key: Value) => Value, rootCost: number): Evaluate {
    const operand = this.#operand(call.args[0]!, rootCost)
    const key = this.#plan(call.args[1]!, 0)
    return (frame) => {
      const value = operand(frame)
      const at = key(frame)
      charge(frame, selectCost)
      return read(value, at)
    }
  }

  #overloads(call: Call): Overload[] {
    const reference = this.#checked.references.get(call.id)
    const declared = this.#functions.functions.get(reference?.name ?? call.function)?.overloads ?? []
    return declared.filter(({ id }) => reference?.overloads?.includes(id))
  }

  #ordinaryCall(call: Call): Evaluate {
    const overloads = this.#overloads(call)
    const isMember = overloads[0]?.member === true
    const operands = isMember && call.target ? [call.target, ...call.args] : call.args
    const args = operands.map((arg) => this.plan(arg))
    const [only] = overloads.length === 1 ? overloads : []
    if (only?.id === 'optional_or_optional') return planOr(args[0]!, args[1]!, (value) => value)
    if (only?.id === 'optional_orValue_value') return planOr(args[0]!, args[1]!, (value) => value.value!)
    const cost = this.#cost(this.#checked.references.get(call.id)?.name ?? call.function, only?.id)
    const second = operands[1] && this.#constant(operands[1])
    if (only?.id === 'in_list' && second instanceof ListValue) return planMembership(args[0]!, second) ?? planCall(overloads, args, cost)
    return planCall(overloads, args, cost)
  }

  /** The function's cost, else the overload's; 1 when neither is defined. */
  #cost(name: string, overload: string | undefined): CallCost {
    const { callCosts } = this.#functions
    const byOverload = overload === undefined ? undefined : callCosts.get(overload)
    const byName = callCosts.get(name)
    if (typeof byName !== 'function') return byName ?? byOverload ?? 1
    // A function's own rule may cover only some of its arguments' types.
    return (args, id) => byName(args, id) ?? (typeof byOverload === 'function' ? byOverload(args, id) : undefined)
  }

  #list({ elements, optionalIndices }: CreateList): Evaluate {
    const planned = elements.map((element) => this.plan(element))
    const optionals = new Set(optionalIndices)
    return (frame) => {
      const items: Value[] = []
      planned.forEach((element, i) => {
        const value = optionals.has(i) ? unwrap(element(frame)) : element(frame)
        if (value !== undefined) items.push(value)
      })
      charge(frame, createListCost)
      return new ArrayList(items)
    }
  }

  #map({ entries }: CreateMap): Evaluate {
    const planned = entries.map(({ key, value, optional }) => ({ key: this.plan(key), value: this.plan(value), optional }))
    return (frame) => {
      const map = new HashMap()
      for (const { key, value, optional } of planned) {
        const at = key(frame)
        const item = optional ? unwrap(value(frame)) : value(frame)
        if (item !== undefined) map.set(at, item)
      }
      charge(frame, createMapCost)
      return map
    }
  }

  #struct(struct: CreateStruct): Evaluate {
    const typeName = (this.#checked.references.get(struct.id)?.name ?? struct.typeName).replace(/^\./, '')
    const planned = struct.fields.map(({ name, value, optional }) => ({ name, value: this.plan(value), optional }))
    return (frame) => {
      const fields = new Map<string, Value>()
      for (const { name, value, optional } of planned) {
        const item = optional ? unwrap(value(frame)) : value(frame)
        if (item !== undefined) fields.set(name, item)
      }
      charge(frame, createStructCost)
      return new ConstructedObject(typeName, fields)
    }
  }

  #comprehension(loop: Comprehension): Evaluate {
    return isBinding(loop) ? planBinding(loop, this) : planComprehension(loop, this)
  }
}

const attributeCalls: ReadonlySet<string> = new Set([operators.index, operators.optionalIndex, operators.optionalSelect, operators.conditional])

function isAttribute(expression: Expression): expression is Identifier | Select | Call {
  if (expression.kind === 'identifier') return true
  if (expression.kind === 'select') return !expression.testOnly
  return expression.kind === 'call' && attributeCalls.has(expression.function)
}

/** What an optional entry holds. @throws EvaluationError for a value that is no optional. */
function unwrap(value: Value): Value | undefined {
  if (!(value instanceof Optional)) throw noSuchOverload()
  return value.value
}

/** `&&` (decided by false) and `||` (decided by true): a side that decides wins over a side that fails. */
function planLogical(left: Evaluate, right: Evaluate, decisive: boolean): Evaluate {
  return (frame) => {
    let failure: EvaluationError | undefined
    try {
      const value = left(frame)
      if (value === decisive) return decisive
      if (value !== !decisive) failure = noSuchOverload()
    } catch (error) {
      failure = absorbed(error)
    }
    if (failure) return decideAlone(right, frame, decisive, failure)
    const value = right(frame)
    if (typeof value !== 'boolean') throw noSuchOverload()
    return value
  }
}

/** The right side where the left one failed: it decides, or the first failure stands. */
function decideAlone(right: Evaluate, frame: Frame, decisive: boolean, failure: EvaluationError): Value {
  try {
    if (right(frame) === decisive) return decisive
  } catch (error) {
    absorbed(error)
  }
  throw failure
}

function planConditional(condition: Evaluate, whenTrue: Evaluate, whenFalse: Evaluate): Evaluate {
  return (frame) => {
    const value = condition(frame)
    if (value === true) return whenTrue(frame)
    if (value === false) return whenFalse(frame)
    throw noSuchOverload()
  }
}

function planNotStrictlyFalse(argument: Evaluate): Evaluate {
  return (frame) => {
    let value: Value = true
    try {
      value = argument(frame)
    } catch (error) {
      absorbed(error)
    }
    charge(frame, 1)
    return value !== false
  }
}

/** `or` and `orValue`: the second argument is looked at only when the first holds nothing. */
function planOr(first: Evaluate, second: Evaluate, result: (value: Optional) => Value): Evaluate {
  return (frame) => {
    const value = first(frame)
    if (!(value instanceof Optional)) throw noSuchOverload()
    return value.value === undefined ? second(frame) : result(value)
  }
}

/** `x in [constants]` as a look-up; undefined when an item is no scalar. */
function planMembership(argument: Evaluate, list: ListValue): Evaluate | undefined {
  const keys = new Set<string>()
  for (let i = 0; i < list.size; i++) {
    const key = mapKey(list.at(i))
    if (key === undefined) return undefined
    keys.add(key)
  }
  return (frame) => {
    const key = mapKey(argument(frame))
    return key !== undefined && keys.has(key)
  }
}
