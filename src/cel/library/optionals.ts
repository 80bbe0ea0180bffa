/**
 * Optional values (L1, pure): optional.of and its kin, optMap and optFlatMap. The operators `.?` and `[?]` and the short cuts of `or`
 * and `orValue` are the planner's. Upstream: cel-go cel/library.go (v0.26).
 */
import type { Library } from '../declarations.ts'
import { declare, member, overload } from '../declarations.ts'
import type { Expression } from '../syntax/ast.ts'
import type { ExpressionBuilder } from '../syntax/expressionBuilder.ts'
import { SyntaxFault } from '../syntax/lexer.ts'
import type { Macro } from '../syntax/macro.ts'
import { conditional } from '../syntax/operators.ts'
import { dynType, optionalType } from '../types.ts'
import type { Value } from '../values.ts'
import { ArrayList, Double, Duration, EvaluationError, ListValue, MapValue, Optional, Timestamp, Uint } from '../values.ts'

const planned = (): never => {
  throw new Error('evaluated by the planner')
}

function isZero(value: Value): boolean {
  if (value instanceof ListValue || value instanceof MapValue) return value.size === 0
  if (value instanceof Uint8Array) return value.length === 0
  if (value instanceof Double) return value.value === 0
  if (value instanceof Uint) return value.value === 0n
  if (value instanceof Duration) return value.nanos === 0n
  if (value instanceof Timestamp) return value.seconds === -62_135_596_800 && value.nanos === 0
  return value === null || value === false || value === 0 || value === ''
}

function contentOf({ value }: Optional): Value {
  if (value === undefined) throw new EvaluationError('optional.none() dereference')
  return value
}

function unwrap(list: ListValue): Value {
  const values: Value[] = []
  for (let i = 0; i < list.size; i++) {
    const item = list.at(i)
    if (!(item instanceof Optional)) throw new EvaluationError('value is not optional')
    if (item.value !== undefined) values.push(item.value)
  }
  return new ArrayList(values)
}

const itemAt = (list: ListValue, index: number): Optional => (list.size === 0 ? Optional.none : new Optional(list.at(index)))

/** `target.optMap(x, e)`: e with x bound to what the target holds, when it holds something. */
function mapping(name: string, wrap: (build: ExpressionBuilder, value: Expression) => Expression): Macro {
  return {
    name,
    arity: 2,
    receiver: true,
    expand(build, { target, args }) {
      const [variable, transform] = args as [Expression, Expression]
      if (variable.kind !== 'identifier') throw new SyntaxFault(`${name}() variable name must be a simple identifier`, variable.offset)
      const value = build.comprehension({
        iterVar: '#unused',
        iterVar2: undefined,
        iterRange: build.list(),
        accuVar: variable.name,
        accuInit: build.memberCall('value', target!),
        loopCondition: build.literal(false),
        loopStep: build.identifier(variable.name),
        result: transform,
      })
      return build.call(conditional, build.memberCall('hasValue', target!), wrap(build, value), none(build))
    },
  }
}

const none = (build: ExpressionBuilder): Expression => build.memberCall('none', build.identifier('optional'))

export const optionals: Library = {
  typeNames: [optionalType(dynType)],
  macros: [mapping('optMap', (build, value) => build.memberCall('of', build.identifier('optional'), value)), mapping('optFlatMap', (_, value) => value)],
  functions: [
    declare(
      'optional.of',
      overload('optional_of', '(V) -> optional(V)', (value: Value) => new Optional(value)),
    ),
    declare(
      'optional.ofNonZeroValue',
      overload('optional_ofNonZeroValue', '(V) -> optional(V)', (value: Value) => (isZero(value) ? Optional.none : new Optional(value))),
    ),
    declare(
      'optional.none',
      overload('optional_none', '() -> optional(V)', () => Optional.none),
    ),
    declare('value', member('optional_value', '(optional(V)) -> V', contentOf)),
    declare(
      'hasValue',
      member('optional_hasValue', '(optional(V)) -> bool', ({ value }: Optional) => value !== undefined),
    ),
    declare('or', member('optional_or_optional', '(optional(V), optional(V)) -> optional(V)', planned)),
    declare('orValue', member('optional_orValue_value', '(optional(V), V) -> V', planned)),
    declare('_?._', overload('select_optional_field', '(dyn, string) -> optional(V)', planned)),
    declare(
      '_[?_]',
      overload('list_optindex_optional_int', '(list(V), int) -> optional(V)', planned),
      overload('optional_list_optindex_optional_int', '(optional(list(V)), int) -> optional(V)', planned),
      overload('map_optindex_optional_value', '(map(K, V), K) -> optional(V)', planned),
      overload('optional_map_optindex_optional_value', '(optional(map(K, V)), K) -> optional(V)', planned),
    ),
    declare(
      '_[_]',
      overload('optional_list_index_int', '(optional(list(V)), int) -> optional(V)', planned),
      overload('optional_map_index_value', '(optional(map(K, V)), K) -> optional(V)', planned),
    ),
    declare(
      'first',
      member('list_first', '(list(V)) -> optional(V)', (list: ListValue) => itemAt(list, 0)),
    ),
    declare(
      'last',
      member('list_last', '(list(V)) -> optional(V)', (list: ListValue) => itemAt(list, list.size - 1)),
    ),
    declare('optional.unwrap', overload('optional_unwrap', '(list(optional(V))) -> list(V)', unwrap)),
    declare('unwrapOpt', member('optional_unwrapOpt', '(list(optional(V))) -> list(V)', unwrap)),
  ],
}
