/**
 * Plans loops (L1, pure). Any comprehension can run as it is written; the forms that macros make run as plain loops, with the same
 * result and the same cost: all and exists stop early and absorb failures, map and filter fill one array.
 * Upstream: cel-go interpreter/interpretable.go evalFold, runtimecost.go (v0.26).
 */
import { createListCost, selectCost } from '../cost/model.ts'
import type { Comprehension, Expression } from '../syntax/ast.ts'
import { conditional, logicalAnd, logicalNot, logicalOr, notStrictlyFalse } from '../syntax/operators.ts'
import type { Value } from '../values.ts'
import { ArrayList, EvaluationError, ListValue, MapValue } from '../values.ts'
import type { Evaluate, Frame } from './frame.ts'
import { absorbed, charge, countIteration, noSuchOverload } from './frame.ts'

/** What loops need of the planner: parts planned within a scope that has the loop's variables. */
export interface LoopPlanner {
  plan(expression: Expression): Evaluate
  /** A place for a variable; `within` plans with the name meaning that place. */
  slot(): number
  within<T>(names: ReadonlyArray<readonly [name: string, slot: number]>, plan: () => T): T
}

/** Plans a loop over the items of a list or the keys (with two variables: the entries) of a map. */
export function planComprehension(loop: Comprehension, planner: LoopPlanner): Evaluate {
  const range = planner.plan(loop.iterRange)
  const slots = { first: planner.slot(), second: planner.slot(), accumulator: planner.slot() }
  const inside = <T>(plan: () => T): T => {
    const names: [string, number][] = [
      [loop.accuVar, slots.accumulator],
      [loop.iterVar, slots.first],
    ]
    if (loop.iterVar2 !== undefined) names.push([loop.iterVar2, slots.second])
    return planner.within(names, plan)
  }
  const each = iteration(range, slots.first, loop.iterVar2 === undefined ? undefined : slots.second)
  const predicate = quantified(loop)
  if (predicate)
    return planQuantifier(
      each,
      predicate.stopsAt,
      inside(() => planner.plan(predicate.predicate)),
    )
  const collected = collection(loop)
  if (collected) {
    const { transform, filter } = collected
    return inside(() => planCollection(each, planner.plan(transform), filter && planner.plan(filter)))
  }
  return planFold(loop, planner, each, slots.accumulator, inside)
}

/** Runs the body for every item, with the loop variables set, until it returns false. `more` says whether another item follows. */
type Each = (frame: Frame, body: (more: boolean) => boolean) => void

function iteration(range: Evaluate, first: number, second: number | undefined): Each {
  return (frame, body) => {
    const items = range(frame)
    if (items instanceof ListValue) eachItem(frame, items, first, second, body)
    else if (items instanceof MapValue) eachEntry(frame, items, first, second, body)
    else throw noSuchOverload()
  }
}

function eachItem(frame: Frame, items: ListValue, first: number, second: number | undefined, body: (more: boolean) => boolean): void {
  const { size } = items
  for (let i = 0; i < size; i++) {
    countIteration(frame)
    frame.slots[first] = second === undefined ? items.at(i) : i
    if (second !== undefined) frame.slots[second] = items.at(i)
    if (!body(i + 1 < size)) return
  }
}

function eachEntry(frame: Frame, items: MapValue, first: number, second: number | undefined, body: (more: boolean) => boolean): void {
  let left = items.size
  for (const key of items.keys()) {
    countIteration(frame)
    left -= 1
    frame.slots[first] = key
    if (second !== undefined) frame.slots[second] = items.get(key)!
    if (!body(left > 0)) return
  }
}

/** Where expression is `name(accumulator, argument)`, the argument. */
function withAccumulator(loop: Comprehension, expression: Expression, name: string): Expression | undefined {
  if (expression.kind !== 'call' || expression.function !== name) return undefined
  const [first, second] = expression.args
  return first?.kind === 'identifier' && first.name === loop.accuVar ? second : undefined
}

/** The predicate of `all` (which stops at false) and `exists` (at true). */
function quantified(loop: Comprehension): { predicate: Expression; stopsAt: boolean } | undefined {
  const { loopCondition, result } = loop
  if (loopCondition.kind !== 'call' || loopCondition.function !== notStrictlyFalse || result.kind !== 'identifier') return undefined
  const negated = loopCondition.args[0]?.kind === 'call' && loopCondition.args[0].function === logicalNot
  const predicate = withAccumulator(loop, loop.loopStep, negated ? logicalOr : logicalAnd)
  return predicate && { predicate, stopsAt: negated }
}

function planQuantifier(each: Each, stopsAt: boolean, predicate: Evaluate): Evaluate {
  // Per item: the accumulator in the condition and in the step, the strictness test, and for exists the negation.
  const conditionCost = stopsAt ? 3 * selectCost : 2 * selectCost
  return (frame) => {
    let failure: EvaluationError | undefined
    let stopped = false
    each(frame, (more) => {
      charge(frame, conditionCost + selectCost)
      try {
        const value = predicate(frame)
        if (value === stopsAt) stopped = true
        else if (value !== !stopsAt) failure ??= noSuchOverload()
      } catch (error) {
        failure ??= absorbed(error)
      }
      if (stopped && more) charge(frame, conditionCost)
      return !stopped
    })
    charge(frame, selectCost)
    if (stopped) return stopsAt
    if (failure) throw failure
    return !stopsAt
  }
}

/** What `map` and `filter` append, and when. */
function collection(loop: Comprehension): { transform: Expression; filter?: Expression } | undefined {
  const { accuInit, loopStep, loopCondition } = loop
  if (accuInit.kind !== 'list' || accuInit.elements.length > 0 || loopCondition.kind !== 'literal' || loopCondition.value !== true) return undefined
  const filtered = loopStep.kind === 'call' && loopStep.function === conditional
  const appended = withAccumulator(loop, filtered ? loopStep.args[1]! : loopStep, '_+_')
  if (appended?.kind !== 'list' || appended.elements.length !== 1 || appended.optionalIndices.length > 0) return undefined
  const transform = appended.elements[0]!
  return filtered ? { transform, filter: loopStep.args[0]! } : { transform }
}

function planCollection(each: Each, transform: Evaluate, filter: Evaluate | undefined): Evaluate {
  // Cost of one append: the accumulator, the list of one item, and the addition.
  const appendCost = selectCost + createListCost + 1
  return (frame) => {
    const items: Value[] = []
    each(frame, () => {
      const wanted = filter ? filter(frame) : true
      if (wanted === true) {
        items.push(transform(frame))
        charge(frame, appendCost)
      } else if (wanted !== false) throw noSuchOverload()
      return true
    })
    charge(frame, selectCost)
    return new ArrayList(items)
  }
}

function planFold(loop: Comprehension, planner: LoopPlanner, each: Each, accumulator: number, inside: <T>(plan: () => T) => T): Evaluate {
  const init = planner.plan(loop.accuInit)
  const condition = inside(() => planner.plan(loop.loopCondition))
  const step = inside(() => planner.plan(loop.loopStep))
  const result = planner.within([[loop.accuVar, accumulator]], () => planner.plan(loop.result))
  // No macro's step survives a failure without the strictness test, so that other loops may end at the first one.
  return (frame) => {
    frame.slots[accumulator] = init(frame)
    each(frame, () => {
      if (condition(frame) === false) return false
      frame.slots[accumulator] = step(frame)
      return true
    })
    return result(frame)
  }
}

/** `cel.bind` and what macros build in its form: a loop over nothing whose accumulator is the variable. */
export function planBinding(loop: Comprehension, planner: LoopPlanner): Evaluate {
  const slot = planner.slot()
  const init = planner.plan(loop.accuInit)
  const result = planner.within([[loop.accuVar, slot]], () => planner.plan(loop.result))
  return (frame) => {
    try {
      frame.slots[slot] = init(frame)
    } catch (error) {
      // Reported where the variable is read, and not at all where it is not.
      frame.slots[slot] = absorbed(error)
    }
    return result(frame)
  }
}

/** Whether a comprehension only gives a name to a value. */
export function isBinding({ iterRange, loopCondition }: Comprehension): boolean {
  return iterRange.kind === 'list' && iterRange.elements.length === 0 && loopCondition.kind === 'literal' && loopCondition.value === false
}

/** Reads a loop variable's slot. @throws EvaluationError when it holds a failure. */
export function readSlot(frame: Frame, slot: number): Value {
  const value = frame.slots[slot]!
  if (value instanceof EvaluationError) throw value
  return value
}
