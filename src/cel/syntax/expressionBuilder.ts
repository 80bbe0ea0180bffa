/**
 * Makes syntax nodes with fresh ids (L1, pure): the parser's and the macros' only way to create them.
 * A macro's nodes all point to the call that it replaces. Upstream: cel-go parser/helper.go (v0.26).
 */
import type { Value } from '../values.ts'
import type { Call, Comprehension, CreateList, CreateMap, Expression, Identifier, Literal, MapEntry, Select } from './ast.ts'
import { accumulator } from './operators.ts'

export class ExpressionBuilder {
  readonly #ids: { last: number }
  readonly #offset: number

  /** `ids` is shared by all builders of one expression. */
  constructor(ids: { last: number }, offset: number) {
    this.#ids = ids
    this.#offset = offset
  }

  /** A builder for another place in the same expression. */
  at(offset: number): ExpressionBuilder {
    return new ExpressionBuilder(this.#ids, offset)
  }
  /** What every node begins with. */
  node(): { id: number; offset: number } {
    this.#ids.last += 1
    return { id: this.#ids.last, offset: this.#offset }
  }
  literal(value: Value): Literal {
    return { ...this.node(), kind: 'literal', value }
  }
  identifier(name: string): Identifier {
    return { ...this.node(), kind: 'identifier', name }
  }
  /** The variable in which a macro's comprehension gathers its result. */
  accumulator(): Identifier {
    return this.identifier(accumulator)
  }
  select(operand: Expression, field: string, testOnly = false): Select {
    return { ...this.node(), kind: 'select', operand, field, testOnly }
  }
  call(name: string, ...args: Expression[]): Call {
    return { ...this.node(), kind: 'call', function: name, target: undefined, args }
  }
  memberCall(name: string, target: Expression, ...args: Expression[]): Call {
    return { ...this.node(), kind: 'call', function: name, target, args }
  }
  list(...elements: Expression[]): CreateList {
    return { ...this.node(), kind: 'list', elements, optionalIndices: [] }
  }
  map(...entries: MapEntry[]): CreateMap {
    return { ...this.node(), kind: 'map', entries }
  }
  comprehension(parts: Omit<Comprehension, 'id' | 'offset' | 'kind'>): Comprehension {
    return { ...this.node(), kind: 'comprehension', ...parts }
  }
}
