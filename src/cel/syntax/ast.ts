/**
 * The syntax tree (L1, pure), as the parser makes it after macros are expanded. Node ids are unique within one expression: the checker
 * files types and overloads under them. Offsets point into the source and are where messages point to.
 * Upstream: cel-go common/ast/expr.go (v0.26).
 */
import type { Value } from '../values.ts'

interface Node {
  readonly id: number
  /** Zero-based, in UTF-16 units. */
  readonly offset: number
}

export interface Literal extends Node {
  readonly kind: 'literal'
  readonly value: Value
}
export interface Identifier extends Node {
  readonly kind: 'identifier'
  /** With a leading dot when written so: the name is then absolute. */
  readonly name: string
}
export interface Select extends Node {
  readonly kind: 'select'
  readonly operand: Expression
  readonly field: string
  /** From `has()`: asks whether the field is set. */
  readonly testOnly: boolean
}
export interface Call extends Node {
  readonly kind: 'call'
  readonly function: string
  /** The receiver of `receiver.function(...)`. */
  readonly target: Expression | undefined
  readonly args: readonly Expression[]
}
export interface CreateList extends Node {
  readonly kind: 'list'
  readonly elements: readonly Expression[]
  /** Indices of `[?x]` elements. */
  readonly optionalIndices: readonly number[]
}
export interface MapEntry extends Node {
  readonly key: Expression
  readonly value: Expression
  readonly optional: boolean
}
export interface CreateMap extends Node {
  readonly kind: 'map'
  readonly entries: readonly MapEntry[]
}
export interface StructField extends Node {
  readonly name: string
  readonly value: Expression
  readonly optional: boolean
}
export interface CreateStruct extends Node {
  readonly kind: 'struct'
  readonly typeName: string
  readonly fields: readonly StructField[]
}
export interface Comprehension extends Node {
  readonly kind: 'comprehension'
  readonly iterVar: string
  /** Set in two-variable comprehensions: iterVar is then the index or key, iterVar2 the value. */
  readonly iterVar2: string | undefined
  readonly iterRange: Expression
  readonly accuVar: string
  readonly accuInit: Expression
  readonly loopCondition: Expression
  readonly loopStep: Expression
  readonly result: Expression
}

export type Expression = Literal | Identifier | Select | Call | CreateList | CreateMap | CreateStruct | Comprehension
