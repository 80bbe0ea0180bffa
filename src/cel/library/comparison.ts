/**
 * Equality, order, membership, size and the logical operators (L1, pure). The logical operators and indexing are run by the planner,
 * as they do not simply evaluate their arguments; here they have their signatures.
 * Upstream: cel-go common/stdlib/standard.go (v0.26).
 */
import type { CallCost } from '../cost/model.ts'
import { matchCost, sizeOfValue, traversal } from '../cost/model.ts'
import type { FunctionDeclaration, Overload } from '../declarations.ts'
import { declare, member, overload } from '../declarations.ts'
import { compare, equal, listContains } from '../equality.ts'
import type { ListValue, MapValue, Value } from '../values.ts'
import { EvaluationError } from '../values.ts'

const comparable = ['bool', 'int64', 'uint64', 'double', 'string', 'bytes', 'timestamp', 'duration'] as const
const mixed = [
  ['int64', 'double'],
  ['int64', 'uint64'],
  ['uint64', 'double'],
  ['uint64', 'int64'],
  ['double', 'int64'],
  ['double', 'uint64'],
] as const

const written = (name: string): string => name.replace('64', '')

function ordering(symbol: string, prefix: string, holds: (order: number) => boolean): FunctionDeclaration {
  const run = (a: Value, b: Value): boolean => {
    const order = compare(a, b)
    if (order === undefined) throw new EvaluationError('no such overload')
    return holds(order)
  }
  const same = comparable.map((name) => overload(`${prefix}_${name}`, `(${written(name)}, ${written(name)}) -> bool`, run))
  const crossed = mixed.map(([a, b]) => overload(`${prefix}_${a}_${b}`, `(${written(a)}, ${written(b)}) -> bool`, run))
  return declare(`_${symbol}_`, ...same, ...crossed)
}

/** Marks a function whose evaluation is the planner's. */
const planned = (): never => {
  throw new Error('evaluated by the planner')
}

const sizeOf = (type: string, name: string): Overload[] => [
  overload(`size_${name}`, `(${type}) -> int`, sizeOfValue),
  member(`${name}_size`, `(${type}) -> int`, sizeOfValue),
]

export const comparison: readonly FunctionDeclaration[] = [
  declare('_==_', overload('equals', '(A, A) -> bool', equal)),
  declare(
    '_!=_',
    overload('not_equals', '(A, A) -> bool', (a: Value, b: Value) => !equal(a, b)),
  ),
  ordering('<', 'less', (order) => order < 0),
  ordering('<=', 'less_equals', (order) => order <= 0),
  ordering('>', 'greater', (order) => order > 0),
  ordering('>=', 'greater_equals', (order) => order >= 0),
  declare(
    '@in',
    overload('in_list', '(A, list(A)) -> bool', (value: Value, list: ListValue) => listContains(list, value)),
    overload('in_map', '(A, map(A, B)) -> bool', (key: Value, map: MapValue) => map.has(key)),
  ),
  declare('size', ...sizeOf('bytes', 'bytes'), ...sizeOf('list(A)', 'list'), ...sizeOf('map(A, B)', 'map'), ...sizeOf('string', 'string')),
  declare(
    '!_',
    overload('logical_not', '(bool) -> bool', (value: boolean) => !value),
  ),
  declare('_&&_', overload('logical_and', '(bool, bool) -> bool', planned)),
  declare('_||_', overload('logical_or', '(bool, bool) -> bool', planned)),
  declare('_?_:_', overload('conditional', '(bool, A, A) -> A', planned)),
  declare('@not_strictly_false', overload('not_strictly_false', '(bool) -> bool', planned)),
  declare('_[_]', overload('index_list', '(list(A), int) -> A', planned), overload('index_map', '(map(A, B), A) -> B', planned)),
]

const shorter: CallCost = ([a, b]) => traversal(Math.min(sizeOfValue(a!), sizeOfValue(b!)))
const sum: CallCost = ([a, b]) => traversal(sizeOfValue(a!) + sizeOfValue(b!))
const first: CallCost = ([a]) => traversal(sizeOfValue(a!))

/** What is not of constant cost 1, by overload. */
export const standardCallCosts: Readonly<Record<string, CallCost>> = {
  equals: shorter,
  not_equals: shorter,
  ...Object.fromEntries(
    ['less', 'less_equals', 'greater', 'greater_equals'].flatMap((name) => [
      [`${name}_string`, shorter],
      [`${name}_bytes`, shorter],
    ]),
  ),
  add_string: sum,
  add_bytes: sum,
  starts_with_string: first,
  ends_with_string: first,
  string_to_bytes: first,
  bytes_to_string: first,
  strings_quote: first,
  string_format: first,
  in_list: ([, list]) => sizeOfValue(list!),
  contains_string: ([text, part]) => traversal(sizeOfValue(text!)) * traversal(sizeOfValue(part!)),
  matches_string: ([text, pattern]) => matchCost(sizeOfValue(text!), sizeOfValue(pattern!)),
}
