/**
 * The lists extension, version 3 (slice, flatten, range, distinct, reverse, sort, sortBy), and the sets extension (L1, pure), with
 * their costs. Upstream: cel-go ext/lists.go, ext/sets.go (v0.26).
 */
import type { CallCost, CallEstimate, CallEstimator, CostEstimate, EstimateNode } from '../cost/model.ts'
import { add, createListCost, fixed, multiply, scale, sizeOfValue, stringTraversalFactor, unbounded } from '../cost/model.ts'
import type { Library, Overload } from '../declarations.ts'
import { declare, member, overload } from '../declarations.ts'
import { compare, equal, listContains } from '../equality.ts'
import type { Expression } from '../syntax/ast.ts'
import type { Macro } from '../syntax/macro.ts'
import { collect, variableName } from '../syntax/macro.ts'
import type { CelInt, Value } from '../values.ts'
import { ArrayList, EvaluationError, ListValue, mapKey, typeNameOf } from '../values.ts'

export const itemsOf = (list: ListValue): Value[] => Array.from({ length: list.size }, (_, i) => list.at(i))

function slice(list: ListValue, start: CelInt, end: CelInt): ListValue {
  const fail = (why: string): EvaluationError => new EvaluationError(`cannot slice(${start}, ${end}), ${why}`)
  if (start < 0 || end < 0) throw fail('negative indexes not supported')
  if (start > end) throw fail('start index must be less than or equal to end index')
  if (list.size < end) throw fail(`list is length ${list.size}`)
  return new ArrayList(itemsOf(list).slice(Number(start), Number(end)))
}

function flatten(list: ListValue, depth: CelInt = 1): ListValue {
  if (depth < 0) throw new EvaluationError('level must be non-negative')
  const flat: Value[] = []
  const visit = (inner: ListValue, left: number): void => {
    for (const item of itemsOf(inner)) {
      if (item instanceof ListValue && left > 0) visit(item, left - 1)
      else flat.push(item)
    }
  }
  visit(list, Number(depth))
  return new ArrayList(flat)
}

/** Longest list that lists.range makes: its cost is charged only afterwards, so that the list itself must be bounded. No budget of Kubernetes allows more. */
const maxRange = 1_000_000

function range(count: CelInt): ListValue {
  if (count > maxRange) throw new EvaluationError(`lists.range(${count}) exceeds the limit of ${maxRange} elements`)
  return new ArrayList(Array.from({ length: Math.max(0, Number(count)) }, (_, i) => i))
}

function distinct(list: ListValue): ListValue {
  const scalars = new Set<string>()
  const others: Value[] = []
  const kept = itemsOf(list).filter((item) => {
    const key = mapKey(item)
    if (key !== undefined) {
      const isNew = !scalars.has(key)
      scalars.add(key)
      return isNew
    }
    if (others.some((other) => equal(item, other))) return false
    others.push(item)
    return true
  })
  return new ArrayList(kept)
}

/** The items in the order of their keys. */
function sortBy(list: ListValue, keys: ListValue): ListValue {
  if (list.size !== keys.size) {
    throw new EvaluationError(
      `@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got ${list.size} and ${keys.size} elements respectively`,
    )
  }
  if (list.size === 0) return list
  const type = typeNameOf(keys.at(0))
  const pairs = itemsOf(keys).map((key, i) => ({ key, item: list.at(i) }))
  if (compare(keys.at(0), keys.at(0)) === undefined) throw new EvaluationError('list elements must be comparable')
  if (pairs.some(({ key }) => typeNameOf(key) !== type)) throw new EvaluationError('list elements must have the same type')
  return new ArrayList(pairs.sort((a, b) => compare(a.key, b.key)!).map(({ item }) => item))
}

const comparable = ['int', 'uint', 'double', 'bool', 'duration', 'timestamp', 'string', 'bytes'] as const
const overloadName = (type: string): string =>
  type === 'duration' || type === 'timestamp' ? `google.protobuf.${type === 'duration' ? 'Duration' : 'Timestamp'}` : type

const sorting = (suffix: string, signature: (type: string) => string, run: (...args: never[]) => Value): Overload[] =>
  comparable.map((type) => member(`list_${overloadName(type)}_${suffix}`, signature(type), run))

/** `list.sortBy(x, key)`: binds the list, so that it is evaluated once, and sorts it by the keys made of its items. */
const sortByMacro: Macro = {
  name: 'sortBy',
  arity: 2,
  receiver: true,
  expand(build, { target, args }) {
    const input = '@__sortBy_input__'
    const [name, key] = args as [Expression, Expression]
    const variables = { iterVar: variableName(name, 'argument is not an identifier'), iterVar2: undefined }
    return build.comprehension({
      iterVar: '#unused',
      iterVar2: undefined,
      iterRange: build.list(),
      accuVar: input,
      accuInit: target!,
      loopCondition: build.literal(false),
      loopStep: build.identifier(input),
      result: build.memberCall('@sortByAssociatedKeys', build.identifier(input), collect(build, build.identifier(input), variables, key)),
    })
  },
}

/** A call that makes a list: dispatch, allocation, and work for each item. */
const allocating = (size: number, factor: number): number => Math.floor(size * factor) + 1 + createListCost
const allocatingEstimate = (size: CostEstimate, factor: number): CallEstimate => ({
  cost: add(scale(size, factor), fixed(1 + createListCost)),
  resultSize: size,
})

const outputCost: CallCost = { ofResult: (result) => allocating(sizeOfValue(result), 1) }
const flattenCost: CallCost = ([list, depth]) => allocating(sizeOfValue(list!), depth === undefined ? 1 : Number(depth))

/** Every item against every other. */
const selfCompareCost = (list: Value): number => {
  const size = sizeOfValue(list)
  const first = list instanceof ListValue && size > 0 ? list.at(0) : undefined
  const reads = typeof first === 'string' || first instanceof Uint8Array
  return allocating(size * size, 2 + (reads ? stringTraversalFactor : 0))
}

const literalInt = (node: EstimateNode | undefined, otherwise: number): number => {
  const value = node?.expression?.kind === 'literal' ? node.expression.value : undefined
  return typeof value === 'number' || typeof value === 'bigint' ? Math.max(0, Number(value)) : otherwise
}

const squareEstimate = (size: CostEstimate, reads: boolean): CallEstimate => allocatingEstimate(multiply(size, size), 2 + (reads ? stringTraversalFactor : 0))
const flattenEstimate: CallEstimator = ({ target, args, sizeOf }) => allocatingEstimate(sizeOf(target!), args.length === 0 ? 1 : literalInt(args[0], unbounded))

const sortCosts = Object.fromEntries(
  comparable.flatMap((type): [string, CallCost][] => [
    [`list_${overloadName(type)}_sort`, ([list]) => selfCompareCost(list!)],
    [`list_${overloadName(type)}_sortByAssociatedKeys`, ([, keys]) => selfCompareCost(keys!)],
  ]),
)
const sortEstimates = Object.fromEntries(
  comparable.flatMap((type): [string, CallEstimator][] => {
    const reads = type === 'string' || type === 'bytes'
    return [
      [`list_${overloadName(type)}_sort`, ({ target, sizeOf }) => squareEstimate(sizeOf(target!), reads)],
      [`list_${overloadName(type)}_sortByAssociatedKeys`, ({ args, sizeOf }) => squareEstimate(sizeOf(args[0]!), reads)],
    ]
  }),
)

export const lists: Library = {
  macros: [sortByMacro],
  functions: [
    declare('slice', member('list_slice', '(list(T), int, int) -> list(T)', slice)),
    declare(
      'flatten',
      member('list_flatten', '(list(list(T))) -> list(T)', (list: ListValue) => flatten(list)),
      member('list_flatten_int', '(list(dyn), int) -> list(dyn)', flatten),
    ),
    declare(
      'sort',
      ...sorting(
        'sort',
        (type) => `(list(${type})) -> list(${type})`,
        (list: ListValue) => sortBy(list, list),
      ),
    ),
    declare('@sortByAssociatedKeys', ...sorting('sortByAssociatedKeys', (type) => `(list(T), list(${type})) -> list(T)`, sortBy)),
    declare('lists.range', overload('lists_range', '(int) -> list(int)', range)),
    declare(
      'reverse',
      member('list_reverse', '(list(T)) -> list(T)', (list: ListValue) => new ArrayList(itemsOf(list).reverse())),
    ),
    declare('distinct', member('list_distinct', '(list(T)) -> list(T)', distinct)),
  ],
  callCosts: {
    list_slice: outputCost,
    lists_range: outputCost,
    list_reverse: outputCost,
    list_flatten: flattenCost,
    list_flatten_int: flattenCost,
    list_distinct: ([list]) => selfCompareCost(list!),
    ...sortCosts,
  },
  callEstimates: {
    list_slice: ({ target, args, sizeOf }) => allocatingEstimate(fixed(Math.max(0, literalInt(args[1], sizeOf(target!).max) - literalInt(args[0], 0))), 1),
    lists_range: ({ args }) => allocatingEstimate(fixed(literalInt(args[0], unbounded)), 1),
    list_reverse: ({ target, sizeOf }) => allocatingEstimate(sizeOf(target!), 1),
    list_flatten: flattenEstimate,
    list_flatten_int: flattenEstimate,
    list_distinct: ({ target, sizeOf }) => squareEstimate(sizeOf(target!), false),
    ...sortEstimates,
  },
}

const containsAll = (list: ListValue, wanted: ListValue): boolean => itemsOf(wanted).every((item) => listContains(list, item))

const setCost =
  (factor: number): CallCost =>
  ([a, b]) =>
    1 + Math.floor(sizeOfValue(a!) * sizeOfValue(b!) * factor)
const setEstimate =
  (factor: number): CallEstimator =>
  ({ args, sizeOf }) => ({ cost: add(scale(multiply(sizeOf(args[0]!), sizeOf(args[1]!)), factor), fixed(1)) })

const signature = '(list(T), list(T)) -> bool'

export const sets: Library = {
  functions: [
    declare('sets.contains', overload('list_sets_contains_list', signature, containsAll)),
    declare(
      'sets.equivalent',
      overload('list_sets_equivalent_list', signature, (a: ListValue, b: ListValue) => containsAll(a, b) && containsAll(b, a)),
    ),
    declare(
      'sets.intersects',
      overload('list_sets_intersects_list', signature, (a: ListValue, b: ListValue) => itemsOf(a).some((item) => listContains(b, item))),
    ),
  ],
  callCosts: { list_sets_contains_list: setCost(1), list_sets_intersects_list: setCost(1), list_sets_equivalent_list: setCost(2) },
  callEstimates: { list_sets_contains_list: setEstimate(1), list_sets_intersects_list: setEstimate(1), list_sets_equivalent_list: setEstimate(2) },
}
