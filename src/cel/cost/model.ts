/**
 * What cost accounting is made of (L1, pure): the unit costs, ranges that saturate at 2^64 as upstream's do, and the shapes in which
 * libraries state what their functions cost. Upstream: cel-go common/cost.go, checker/cost.go (v0.26).
 */
import type { Expression } from '../syntax/ast.ts'
import { codePointCount } from '../text.ts'
import type { CelType } from '../types.ts'
import type { Value } from '../values.ts'
import { ListValue, MapValue, OpaqueValue, Optional } from '../values.ts'

/** Least and most that an evaluation can cost, in CEL's cost units; `max` is 2^64 when there is no bound. Also used for sizes. */
export interface CostEstimate {
  readonly min: number
  readonly max: number
}

/** A node whose size only the data's schema knows. */
export interface SizedNode {
  /** From a variable through field names, `@items`, `@keys`, `@values` and `@indices`; undefined when the node is no part of a variable. */
  readonly path: readonly string[] | undefined
  readonly type: CelType
}

/** How long strings are and how many items lists and maps have; undefined where unknown, also for paths that begin with no variable. */
export type SizeEstimator = (node: SizedNode) => CostEstimate | undefined

export const selectCost = 1
export const createListCost = 10
export const createMapCost = 30
export const createStructCost = 40
/** Cost of reading or copying one character of a string. */
export const stringTraversalFactor = 0.1
/** Cost of one character of a pattern; each expression in a pattern is assumed to have four characters. */
export const regexLengthFactor = 0.25

/** Stands for "no bound": upstream's largest 64-bit number. */
export const unbounded = 2 ** 64

const saturate = (value: number): number => Math.min(value, unbounded)
const times = (a: number, b: number): number => (a === 0 || b === 0 ? 0 : saturate(a * b))

export const range = (min: number, max: number): CostEstimate => ({ min, max })
export const fixed = (value: number): CostEstimate => ({ min: value, max: value })
export const unknownSize: CostEstimate = range(0, unbounded)

export const add = (a: CostEstimate, b: CostEstimate): CostEstimate => ({ min: saturate(a.min + b.min), max: saturate(a.max + b.max) })
export const multiply = (a: CostEstimate, b: CostEstimate): CostEstimate => ({ min: times(a.min, b.min), max: times(a.max, b.max) })
export const union = (a: CostEstimate, b: CostEstimate): CostEstimate => ({ min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) })
/** Times a factor, rounded up. */
export const scale = (a: CostEstimate, factor: number): CostEstimate => ({
  min: saturate(Math.ceil(a.min * factor)),
  max: saturate(Math.ceil(a.max * factor)),
})

/** What a call costs by its arguments; undefined when the function does not know this case. Charged before the call, so that it also guards it. */
export type ArgumentCost = (args: readonly Value[], overload: string) => number | undefined

/** What a call costs at run time: always the same, by its arguments, or by what it returned. */
export type CallCost = number | ArgumentCost | { readonly ofResult: (result: Value) => number }

/** An argument as estimators see it. */
export interface EstimateNode extends SizedNode {
  /** Undefined for items of a list that are known by their type only. */
  readonly expression: Expression | undefined
  /** Known from the expression itself. */
  readonly size: CostEstimate | undefined
}

export interface CallToEstimate {
  readonly overload: string
  /** The receiver of a member function. */
  readonly target: EstimateNode | undefined
  readonly args: readonly EstimateNode[]
  /** The size from the expression, else from the schema, else unbounded. */
  sizeOf(node: EstimateNode): CostEstimate
}

/** The cost of a call without its arguments, and the size of its result where it has one. */
export interface CallEstimate {
  readonly cost: CostEstimate
  readonly resultSize?: CostEstimate | undefined
}
export type CallEstimator = (call: CallToEstimate) => CallEstimate | undefined

/** How much there is of a value, as `size()` counts; 1 for what has no size. */
export function sizeOfValue(value: Value): number {
  if (typeof value === 'string') return codePointCount(value)
  if (value instanceof ListValue || value instanceof MapValue) return value.size
  if (value instanceof Uint8Array) return value.length
  if (value instanceof Optional && value.value !== undefined) return sizeOfValue(value.value)
  return value instanceof OpaqueValue ? (value.costSize ?? 1) : 1
}

/** The cost of reading so many characters. */
export const traversal = (characters: number): number => Math.ceil(characters * stringTraversalFactor)

/** The cost of a match: both lengths count, and one is added to the text's so that an empty one does not make a pattern free. */
export const matchCost = (text: number, pattern: number): number => traversal(1 + text) * Math.ceil(pattern * regexLengthFactor)
