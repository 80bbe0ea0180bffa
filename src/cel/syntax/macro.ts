/**
 * Macros (L1, pure): calls that the parser replaces by other syntax before anything is checked. Here: what a macro is, and the
 * language's own (has, all, exists, exists_one, map, filter); libraries bring more.
 * Upstream: cel-go parser/macro.go (v0.26).
 */
import type { Expression } from './ast.ts'
import type { ExpressionBuilder } from './expressionBuilder.ts'
import { SyntaxFault } from './lexer.ts'
import { accumulator, conditional, logicalAnd, logicalNot, logicalOr, notStrictlyFalse } from './operators.ts'

export interface MacroCall {
  readonly target: Expression | undefined
  readonly args: readonly Expression[]
}

export interface Macro {
  readonly name: string
  /** How many arguments; 'any' when the macro decides itself. */
  readonly arity: number | 'any'
  /** Whether it is written `target.name(...)`. */
  readonly receiver: boolean
  /** The replacement; undefined when this call is no case for the macro. @throws SyntaxFault for bad arguments. */
  expand(build: ExpressionBuilder, call: MacroCall): Expression | undefined
}

export const macroKey = (name: string, arity: number | 'any', receiver: boolean): string => `${receiver ? '.' : ''}${name}/${arity}`

/** Macros by the key under which the parser looks them up; a later one replaces an earlier one of the same form. */
export function macroTable(macros: Iterable<Macro>): Map<string, Macro> {
  const table = new Map<string, Macro>()
  for (const macro of macros) table.set(macroKey(macro.name, macro.arity, macro.receiver), macro)
  return table
}

/** The variable that an argument names. @throws SyntaxFault with the given text when it is anything but a simple name. */
export function variableName(argument: Expression, otherwise: string): string {
  if (argument.kind !== 'identifier' || argument.name.startsWith('.')) throw new SyntaxFault(otherwise, argument.offset)
  if (argument.name === accumulator || argument.name === '__result__') {
    throw new SyntaxFault('iteration variable overwrites accumulator variable', argument.offset)
  }
  return argument.name
}

const notIdentifier = 'argument is not an identifier'

/** The variables a quantifier or transformation runs with: one for items, or two for indices and values. */
export interface LoopVariables {
  readonly iterVar: string
  readonly iterVar2: string | undefined
}

type Loop = (build: ExpressionBuilder, range: Expression, variables: LoopVariables, ...args: Expression[]) => Expression

/** True when the predicate holds for every item; stops at the first false. */
export const all: Loop = (build, iterRange, variables, predicate) =>
  build.comprehension({
    ...variables,
    iterRange,
    accuVar: accumulator,
    accuInit: build.literal(true),
    loopCondition: build.call(notStrictlyFalse, build.accumulator()),
    loopStep: build.call(logicalAnd, build.accumulator(), predicate!),
    result: build.accumulator(),
  })

/** True when the predicate holds for some item; stops at the first true. */
export const exists: Loop = (build, iterRange, variables, predicate) =>
  build.comprehension({
    ...variables,
    iterRange,
    accuVar: accumulator,
    accuInit: build.literal(false),
    loopCondition: build.call(notStrictlyFalse, build.call(logicalNot, build.accumulator())),
    loopStep: build.call(logicalOr, build.accumulator(), predicate!),
    result: build.accumulator(),
  })

/** True when the predicate holds for exactly one item. */
export const existsOne: Loop = (build, iterRange, variables, predicate) =>
  build.comprehension({
    ...variables,
    iterRange,
    accuVar: accumulator,
    accuInit: build.literal(0),
    loopCondition: build.literal(true),
    loopStep: build.call(conditional, predicate!, build.call('_+_', build.accumulator(), build.literal(1)), build.accumulator()),
    result: build.call('_==_', build.accumulator(), build.literal(1)),
  })

/** Collects `transform` of the items for which `filter`, where given, holds. */
export function collect(build: ExpressionBuilder, iterRange: Expression, variables: LoopVariables, transform: Expression, filter?: Expression): Expression {
  const append = build.call('_+_', build.accumulator(), build.list(transform))
  return build.comprehension({
    ...variables,
    iterRange,
    accuVar: accumulator,
    accuInit: build.list(),
    loopCondition: build.literal(true),
    loopStep: filter ? build.call(conditional, filter, append, build.accumulator()) : append,
    result: build.accumulator(),
  })
}

const quantifier = (name: string, loop: Loop): Macro => ({
  name,
  arity: 2,
  receiver: true,
  expand: (build, { target, args }) =>
    loop(build, target!, { iterVar: variableName(args[0]!, 'argument must be a simple name'), iterVar2: undefined }, args[1]!),
})

const transformer = (name: string, arity: number, parts: (args: readonly Expression[]) => { transform: Expression; filter?: Expression }): Macro => ({
  name,
  arity,
  receiver: true,
  expand(build, { target, args }) {
    const { transform, filter } = parts(args)
    return collect(build, target!, { iterVar: variableName(args[0]!, notIdentifier), iterVar2: undefined }, transform, filter)
  },
})

export const standardMacros: readonly Macro[] = [
  {
    name: 'has',
    arity: 1,
    receiver: false,
    expand(build, { args }) {
      const [field] = args
      if (field?.kind !== 'select') throw new SyntaxFault('invalid argument to has() macro', field!.offset)
      return build.select(field.operand, field.field, true)
    },
  },
  quantifier('all', all),
  quantifier('exists', exists),
  quantifier('exists_one', existsOne),
  quantifier('existsOne', existsOne),
  transformer('map', 2, (args) => ({ transform: args[1]! })),
  transformer('map', 3, (args) => ({ transform: args[2]!, filter: args[1]! })),
  transformer('filter', 2, (args) => ({ transform: args[0]!, filter: args[1]! })),
]
