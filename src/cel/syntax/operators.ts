/**
 * The names under which operators are functions (L1, pure), as overload tables, costs and messages know them.
 * Upstream: cel-go common/operators/operators.go (v0.26).
 */

export interface BinaryOperator {
  readonly function: string
  /** Higher binds tighter. */
  readonly precedence: number
}

export const binaryOperators: ReadonlyMap<string, BinaryOperator> = new Map([
  ['||', { function: '_||_', precedence: 1 }],
  ['&&', { function: '_&&_', precedence: 2 }],
  ...['==', '!=', '<', '<=', '>', '>='].map((symbol): [string, BinaryOperator] => [symbol, { function: `_${symbol}_`, precedence: 3 }]),
  ['in', { function: '@in', precedence: 3 }],
  ['+', { function: '_+_', precedence: 4 }],
  ['-', { function: '_-_', precedence: 4 }],
  ['*', { function: '_*_', precedence: 5 }],
  ['/', { function: '_/_', precedence: 5 }],
  ['%', { function: '_%_', precedence: 5 }],
])

export const conditional = '_?_:_'
export const logicalAnd = '_&&_'
export const logicalOr = '_||_'
export const logicalNot = '!_'
export const negate = '-_'
export const index = '_[_]'
export const optionalIndex = '_[?_]'
export const optionalSelect = '_?._'
export const notStrictlyFalse = '@not_strictly_false'

/** Where comprehensions made by macros gather their result; no name that an expression can write. */
export const accumulator = '@result'

/** Words set aside for later versions of the language: fields may have these names, variables may not. */
export const reservedWords: ReadonlySet<string> = new Set(
  'as break const continue else false for function if import in let loop package namespace null return true var void while'.split(' '),
)
