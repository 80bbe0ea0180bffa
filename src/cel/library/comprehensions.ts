/**
 * Loops with two variables, index and item or key and value (L1, pure): all, exists, existsOne, transformList, transformMap,
 * transformMapEntry. And cel.bind. Upstream: cel-go ext/comprehensions.go, ext/bindings.go (v0.26).
 */
import type { Library } from '../declarations.ts'
import { declare, overload } from '../declarations.ts'
import type { Expression } from '../syntax/ast.ts'
import type { ExpressionBuilder } from '../syntax/expressionBuilder.ts'
import { SyntaxFault } from '../syntax/lexer.ts'
import type { LoopVariables, Macro } from '../syntax/macro.ts'
import { all, collect, exists, existsOne, variableName } from '../syntax/macro.ts'
import { accumulator, conditional } from '../syntax/operators.ts'
import { describe } from '../text.ts'
import type { MapValue, Value } from '../values.ts'
import { EvaluationError, HashMap } from '../values.ts'

function loopVariables(first: Expression, second: Expression): LoopVariables {
  const wanted = 'argument must be a simple name'
  const variables = { iterVar: variableName(first, wanted), iterVar2: variableName(second, wanted) }
  if (variables.iterVar === variables.iterVar2) throw new SyntaxFault(`duplicate variable name: ${variables.iterVar}`, second.offset)
  return variables
}

const quantifier = (name: string, loop: typeof all): Macro => ({
  name,
  arity: 3,
  receiver: true,
  expand: (build, { target, args }) => loop(build, target!, loopVariables(args[0]!, args[1]!), args[2]!),
})

type Transform = (build: ExpressionBuilder, range: Expression, variables: LoopVariables, transform: Expression, filter?: Expression) => Expression

/** A macro in two forms: with and without a filter before the transformation. */
const transformer = (name: string, run: Transform): Macro[] =>
  [3, 4].map((arity) => ({
    name,
    arity,
    receiver: true,
    expand(build, { target, args }) {
      const variables = loopVariables(args[0]!, args[1]!)
      return arity === 3 ? run(build, target!, variables, args[2]!) : run(build, target!, variables, args[3]!, args[2]!)
    },
  }))

const insertion =
  (entry: (build: ExpressionBuilder, variables: LoopVariables, transform: Expression) => Expression[]): Transform =>
  (build, iterRange, variables, transform, filter) => {
    const insert = build.call('cel.@mapInsert', build.accumulator(), ...entry(build, variables, transform))
    return build.comprehension({
      ...variables,
      iterRange,
      accuVar: accumulator,
      accuInit: build.map(),
      loopCondition: build.literal(true),
      loopStep: filter ? build.call(conditional, filter, insert, build.accumulator()) : insert,
      result: build.accumulator(),
    })
  }

function insert(map: MapValue, key: Value, value: Value): MapValue {
  if (map.has(key)) throw new EvaluationError(`insert failed: key ${describe(key)} already exists`)
  // The loop alone holds its accumulator, so it grows in place; only the first insertion copies.
  const target = map instanceof GrowingMap ? map : new GrowingMap()
  if (target !== map) for (const existing of map.keys()) target.set(existing, map.get(existing)!)
  target.set(key, value)
  return target
}

class GrowingMap extends HashMap {}

function insertAll(map: MapValue, entries: MapValue): MapValue {
  let result = map
  for (const key of entries.keys()) result = insert(result, key, entries.get(key)!)
  return result
}

export const twoVariableComprehensions: Library = {
  macros: [
    quantifier('all', all),
    quantifier('exists', exists),
    quantifier('existsOne', existsOne),
    quantifier('exists_one', existsOne),
    ...transformer('transformList', collect),
    ...transformer(
      'transformMap',
      insertion((build, { iterVar }, transform) => [build.identifier(iterVar), transform]),
    ),
    ...transformer(
      'transformMapEntry',
      insertion((_, __, transform) => [transform]),
    ),
  ],
  functions: [
    declare(
      'cel.@mapInsert',
      overload('@mapInsert_map_key_value', '(map(K, V), K, V) -> map(K, V)', insert),
      overload('@mapInsert_map_map', '(map(K, V), map(K, V)) -> map(K, V)', insertAll),
    ),
  ],
}

/** `cel.bind(name, value, expression)`: the expression, with the name standing for the value. */
export const bindings: Library = {
  macros: [
    {
      name: 'bind',
      arity: 3,
      receiver: true,
      expand(build, { target, args }) {
        if (target?.kind !== 'identifier' || target.name !== 'cel') return undefined
        const [name, value, expression] = args as [Expression, Expression, Expression]
        const variable = variableName(name, 'cel.bind() variable names must be simple identifiers')
        return build.comprehension({
          iterVar: '#unused',
          iterVar2: undefined,
          iterRange: build.list(),
          accuVar: variable,
          accuInit: value,
          loopCondition: build.literal(false),
          loopStep: build.identifier(variable),
          result: expression,
        })
      },
    },
  ],
}
