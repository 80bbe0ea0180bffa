/**
 * The bounds of the language's own functions (L1, pure), overload by overload. Other calls cost 1.
 * Upstream: cel-go checker/cost.go functionCost (v0.26).
 */
import type { Call, Expression } from '../syntax/ast.ts'
import type { CallEstimate, CostEstimate, EstimateNode } from './model.ts'
import { add, fixed, multiply, range, regexLengthFactor, scale, stringTraversalFactor, union, unknownSize } from './model.ts'

export interface StandardCall {
  readonly call: Call
  readonly overload: string
  readonly target: EstimateNode | undefined
  readonly args: readonly EstimateNode[]
  readonly argCosts: readonly CostEstimate[]
  /** Of argCosts. */
  readonly argSum: CostEstimate
  /** Notes that the call's result has entries of either argument's sizes. */
  unionEntrySizes(a: Expression, b: Expression): void
}

type Rule = (call: StandardCall) => CallEstimate

const sizeOf = (node: EstimateNode | undefined): CostEstimate => node?.size ?? unknownSize
const read = (size: CostEstimate): CostEstimate => scale(size, stringTraversalFactor)

const readFirst: Rule = ({ args, argSum }) => ({ cost: add(read(sizeOf(args[0])), argSum) })

/** Reads the argument and makes something whose size follows from it. */
const convert =
  (resultSize: (size: CostEstimate) => CostEstimate): Rule =>
  ({ args, argSum }) => ({ cost: add(read(sizeOf(args[0])), argSum), resultSize: resultSize(sizeOf(args[0])) })

/** The side that decides may be the first: the least is its cost alone. */
const logical: Rule = ({ argCosts: [left, right] }) => ({ cost: range(left!.min, add(left!, right!).max) })

const conditional: Rule = ({ call, args, argCosts, unionEntrySizes }) => {
  unionEntrySizes(call.args[1]!, call.args[2]!)
  return { cost: add(argCosts[0]!, union(argCosts[1]!, argCosts[2]!)), resultSize: union(sizeOf(args[1]), sizeOf(args[2])) }
}

const concatenate =
  (cost: (size: CostEstimate) => CostEstimate): Rule =>
  ({ call, args, argSum, unionEntrySizes }) => {
    const resultSize = add(sizeOf(args[0]), sizeOf(args[1]))
    unionEntrySizes(call.args[0]!, call.args[1]!)
    return { cost: add(cost(resultSize), argSum), resultSize }
  }

const compare: Rule = ({ args, argSum }) => {
  const most = Math.min(sizeOf(args[0]).max, sizeOf(args[1]).max)
  return { cost: add(read(range(most > 0 ? 1 : 0, most)), argSum) }
}

const match: Rule = ({ target, args, argSum }) => {
  const text = read(add(sizeOf(target), fixed(1)))
  return { cost: add(multiply(text, scale(sizeOf(args[0]), regexLengthFactor)), argSum) }
}

const contains: Rule = ({ target, args, argSum }) => ({ cost: add(multiply(read(sizeOf(target)), read(sizeOf(args[0]))), argSum) })

const ordered = ['less', 'greater', 'less_equals', 'greater_equals'].flatMap((name) => [`${name}_string`, `${name}_bytes`])

const rules: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['string_format', ({ target, argSum }) => ({ cost: add(read(sizeOf(target)), argSum) })],
  ['string_to_bytes', convert(({ min, max }) => range(min, max * 4))],
  ['bytes_to_string', convert(({ min, max }) => range(Math.floor(min / 4), max))],
  ['strings_quote', convert(({ min, max }) => range(min + 2, max * 2 + 2))],
  ['starts_with_string', readFirst],
  ['ends_with_string', readFirst],
  ['in_list', ({ args, argSum }) => ({ cost: add(sizeOf(args[1]), argSum) })],
  ['matches_string', match],
  ['contains_string', contains],
  ['logical_and', logical],
  ['logical_or', logical],
  ['conditional', conditional],
  ['add_string', concatenate(read)],
  ['add_bytes', concatenate(read)],
  ['add_list', concatenate(() => fixed(1))],
  ...[...ordered, 'equals', 'not_equals'].map((overload): [string, Rule] => [overload, compare]),
])

export function estimateStandardCall(call: StandardCall): CallEstimate {
  return rules.get(call.overload)?.(call) ?? { cost: add(fixed(1), call.argSum) }
}
