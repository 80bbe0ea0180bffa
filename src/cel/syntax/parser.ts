/**
 * Source text to syntax tree (L1, pure): recursive descent with precedence climbing; macros are expanded on the way.
 * Chains of && and || become balanced trees, so that long ones do not nest deeply; all other nesting is limited.
 * Upstream: cel-go parser/parser.go (v0.26); messages follow the texts of its ANTLR parser where one token is to blame.
 */
import type { Value } from '../values.ts'
import { Double, int, maxInt, maxUint, minInt, Uint } from '../values.ts'
import type { Call, CreateList, CreateMap, CreateStruct, Expression, MapEntry, StructField } from './ast.ts'
import { ExpressionBuilder } from './expressionBuilder.ts'
import type { Token } from './lexer.ts'
import { SyntaxFault, tokenize } from './lexer.ts'
import type { Macro } from './macro.ts'
import { macroKey } from './macro.ts'
import { binaryOperators, conditional, index, logicalNot, negate, optionalIndex, optionalSelect, reservedWords } from './operators.ts'
import { EscapeFault, unescapeBytes, unescapeString } from './unescape.ts'

/** Longest expression, in code points. */
export const maxExpressionSize = 100_000
const maxNesting = 250

const startOfEntry = "{'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
const startOfField = "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"
const startOfExpression = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"

/** Parses a whole expression. @throws SyntaxFault */
export function parse(source: string, macros: ReadonlyMap<string, Macro>): Expression {
  // A string's length bounds its code points from above, and costs nothing to ask for.
  const size = source.length > maxExpressionSize ? [...source].length : source.length
  if (size > maxExpressionSize) throw new SyntaxFault(`expression code point size exceeds limit: size: ${size}, limit ${maxExpressionSize}`, 0)
  return new Parser(tokenize(source), macros).parse()
}

class Parser {
  readonly #tokens: readonly Token[]
  readonly #macros: ReadonlyMap<string, Macro>
  readonly #build = new ExpressionBuilder({ last: 0 }, 0)
  #next = 0
  #nesting = 0

  constructor(tokens: readonly Token[], macros: ReadonlyMap<string, Macro>) {
    this.#tokens = tokens
    this.#macros = macros
  }

  parse(): Expression {
    const expression = this.#expression()
    const rest = this.#peek()
    // One token too many reads as superfluous, several as something else begun.
    if (rest.kind !== 'end') throw this.#unexpected('<EOF>', this.#tokens[this.#next + 1]?.kind === 'end' ? 'extraneous' : 'mismatched')
    return expression
  }

  #peek(): Token {
    return this.#tokens[this.#next]!
  }
  #is(symbol: string): boolean {
    const token = this.#peek()
    return token.kind === 'symbol' && token.text === symbol
  }
  #take(): Token {
    return this.#tokens[this.#next++]!
  }
  #accept(symbol: string): Token | undefined {
    return this.#is(symbol) ? this.#take() : undefined
  }
  #expect(symbol: string): Token {
    if (!this.#is(symbol)) throw this.#unexpected(`'${symbol}'`)
    return this.#take()
  }
  #unexpected(wanted: string, how: 'mismatched' | 'extraneous' = 'mismatched'): SyntaxFault {
    const { text, offset } = this.#peek()
    return new SyntaxFault(`Syntax error: ${how} input '${text}' expecting ${wanted}`, offset)
  }
  #deeper(): void {
    this.#nesting += 1
    if (this.#nesting > maxNesting) throw new SyntaxFault('max recursion depth exceeded', this.#peek().offset)
  }

  /** conditionalOr ['?' conditionalOr ':' expression] */
  #expression(): Expression {
    const outer = this.#nesting
    this.#deeper()
    const condition = this.#binary(1)
    const question = this.#accept('?')
    if (!question) {
      this.#nesting = outer
      return condition
    }
    const build = this.#build.at(question.offset)
    const whenTrue = this.#binary(1)
    this.#expect(':')
    const whenFalse = this.#expression()
    this.#nesting = outer
    return build.call(conditional, condition, whenTrue, whenFalse)
  }

  #binary(precedence: number): Expression {
    const outer = this.#nesting
    let left = precedence === 5 ? this.#unary() : this.#binary(precedence + 1)
    const terms = [left]
    const symbols: Token[] = []
    for (;;) {
      const token = this.#peek()
      const operator = token.kind === 'symbol' ? binaryOperators.get(token.text) : undefined
      if (operator?.precedence !== precedence) break
      this.#take()
      const right = precedence === 5 ? this.#unary() : this.#binary(precedence + 1)
      if (precedence <= 2) {
        terms.push(right)
        symbols.push(token)
      } else {
        this.#deeper()
        left = this.#build.at(token.offset).call(operator.function, left, right)
      }
    }
    this.#nesting = outer
    return symbols.length > 0 ? this.#balance(binaryOperators.get(symbols[0]!.text)!.function, terms, symbols, 0, symbols.length - 1) : left
  }

  #balance(name: string, terms: readonly Expression[], symbols: readonly Token[], low: number, high: number): Expression {
    const middle = Math.floor((low + high + 1) / 2)
    const left = middle === low ? terms[middle]! : this.#balance(name, terms, symbols, low, middle - 1)
    const right = middle === high ? terms[middle + 1]! : this.#balance(name, terms, symbols, middle + 1, high)
    return this.#build.at(symbols[middle]!.offset).call(name, left, right)
  }

  #unary(): Expression {
    const first = this.#peek()
    if (!this.#is('!') && !this.#is('-')) return this.#member()
    // A minus before a number is part of the literal: the smallest int could not be written otherwise.
    const following = this.#tokens[this.#next + 1]
    if (this.#is('-') && (following?.kind === 'int' || following?.kind === 'double')) return this.#member()
    let count = 0
    while (this.#accept(first.text)) count += 1
    const operand = this.#member()
    return count % 2 === 0 ? operand : this.#build.at(first.offset).call(first.text === '!' ? logicalNot : negate, operand)
  }

  #member(): Expression {
    const outer = this.#nesting
    let expression = this.#primary()
    for (;;) {
      const token = this.#peek()
      if (this.#accept('.')) expression = this.#dot(expression, token)
      else if (this.#accept('[')) {
        const optional = this.#accept('?') !== undefined
        const key = this.#expression()
        this.#expect(']')
        expression = this.#build.at(token.offset).call(optional ? optionalIndex : index, expression, key)
      } else if (this.#is('{') && qualifiedName(expression) !== undefined) expression = this.#struct(qualifiedName(expression)!)
      else break
      this.#deeper()
    }
    this.#nesting = outer
    return expression
  }

  #dot(operand: Expression, dot: Token): Expression {
    const optional = this.#accept('?') !== undefined
    const next = this.#peek()
    if (!optional && next.kind !== 'identifier')
      throw new SyntaxFault(`Syntax error: no viable alternative at input '.${next.kind === 'end' ? '' : next.text}'`, next.offset)
    const name = this.#identifier()
    const open = this.#peek()
    if (!optional && this.#accept('(')) return this.#call(name.text, operand, open)
    const build = this.#build.at(dot.offset)
    return optional ? build.call(optionalSelect, operand, this.#build.at(name.offset).literal(name.text)) : build.select(operand, name.text)
  }

  #identifier(): Token {
    if (this.#peek().kind !== 'identifier') throw this.#unexpected('IDENTIFIER')
    return this.#take()
  }

  /** A call whose name and opening parenthesis are read. */
  #call(name: string, target: Expression | undefined, open: Token): Expression {
    const args = this.#is(')') ? [] : this.#expressions()
    this.#expect(')')
    const receiver = target !== undefined
    const macro = this.#macros.get(macroKey(name, args.length, receiver)) ?? this.#macros.get(macroKey(name, 'any', receiver))
    const build = this.#build.at(open.offset)
    const expanded = macro?.expand(build, { target, args })
    if (expanded) return expanded
    return { ...build.node(), kind: 'call', function: name, target, args } satisfies Call
  }

  #expressions(): Expression[] {
    const list = [this.#expression()]
    while (this.#accept(',')) list.push(this.#expression())
    return list
  }

  #primary(): Expression {
    const token = this.#peek()
    if (token.kind === 'identifier') return this.#name('')
    if (token.kind === 'symbol') {
      switch (token.text) {
        case '.':
          this.#take()
          return this.#name('.')
        case '(': {
          this.#take()
          const inner = this.#expression()
          this.#expect(')')
          return inner
        }
        case '[':
          return this.#list()
        case '{':
          return this.#map()
        case '-':
        case 'true':
        case 'false':
        case 'null':
          return this.#literal()
        default:
          throw this.#unexpected(startOfExpression)
      }
    }
    if (token.kind === 'end') throw this.#unexpected(startOfExpression)
    return this.#literal()
  }

  #name(dot: string): Expression {
    const name = this.#identifier()
    const open = this.#peek()
    if (reservedWords.has(name.text)) throw new SyntaxFault(`reserved identifier: ${name.text}`, name.offset)
    if (this.#accept('(')) return this.#call(dot + name.text, undefined, open)
    return this.#build.at(name.offset).identifier(dot + name.text)
  }

  #literal(): Expression {
    const first = this.#take()
    const negative = first.text === '-' && first.kind === 'symbol'
    const token = negative ? this.#take() : first
    return this.#build.at(first.offset).literal(literalValue(token, negative))
  }

  #list(): CreateList {
    const open = this.#take()
    const elements: Expression[] = []
    const optionalIndices: number[] = []
    while (!this.#is(']')) {
      if (this.#accept('?')) optionalIndices.push(elements.length)
      elements.push(this.#expression())
      if (!this.#accept(',')) break
    }
    this.#expect(']')
    return { ...this.#build.at(open.offset).node(), kind: 'list', elements, optionalIndices }
  }

  #map(): CreateMap {
    const open = this.#take()
    const entries: MapEntry[] = []
    this.#entryMustFollow(startOfEntry, (token) => token.kind !== 'end' && token.text !== ':')
    while (!this.#is('}')) {
      const optional = this.#accept('?') !== undefined
      const key = this.#expression()
      const colon = this.#expect(':')
      entries.push({ ...this.#build.at(colon.offset).node(), key, value: this.#expression(), optional })
      if (!this.#accept(',')) break
    }
    this.#expect('}')
    return { ...this.#build.at(open.offset).node(), kind: 'map', entries }
  }

  /** Refuses a brace that is followed by nothing that can stand in it, naming all that can. */
  #entryMustFollow(wanted: string, fits: (token: Token) => boolean): void {
    const next = this.#peek()
    if (!fits(next)) throw this.#unexpected(wanted, next.kind === 'end' ? 'mismatched' : 'extraneous')
  }

  #struct(typeName: string): CreateStruct {
    const open = this.#take()
    const fields: StructField[] = []
    this.#entryMustFollow(startOfField, (token) => token.kind === 'identifier' || ['}', ',', '?'].includes(token.text))
    while (!this.#is('}')) {
      const optional = this.#accept('?') !== undefined
      const name = this.#identifier()
      const colon = this.#expect(':')
      fields.push({ ...this.#build.at(colon.offset).node(), name: name.text, value: this.#expression(), optional })
      if (!this.#accept(',')) break
    }
    this.#expect('}')
    return { ...this.#build.at(open.offset).node(), kind: 'struct', typeName, fields }
  }
}

/** `a.b.c` as text when the expression is nothing but names and dots. */
export function qualifiedName(expression: Expression): string | undefined {
  if (expression.kind === 'identifier') return expression.name
  if (expression.kind !== 'select' || expression.testOnly) return undefined
  const prefix = qualifiedName(expression.operand)
  return prefix === undefined ? undefined : `${prefix}.${expression.field}`
}

function literalValue(token: Token, negative: boolean): Value {
  const { text, kind, offset } = token
  switch (kind) {
    case 'int': {
      const value = negative ? -BigInt(text) : BigInt(text)
      if (value < minInt || value > maxInt) throw new SyntaxFault('invalid int literal', offset)
      return int(value)
    }
    case 'uint': {
      const value = BigInt(text.slice(0, -1))
      if (value > maxUint) throw new SyntaxFault('invalid uint literal', offset)
      return new Uint(value)
    }
    case 'double': {
      const value = Number(text)
      if (!Number.isFinite(value)) throw new SyntaxFault('invalid double literal', offset)
      return new Double(negative ? -value : value)
    }
    case 'string':
    case 'bytes':
      try {
        return kind === 'string' ? unescapeString(text) : unescapeBytes(text)
      } catch (error) {
        if (error instanceof EscapeFault) throw new SyntaxFault(error.message, offset)
        throw error
      }
    default:
      return text === 'null' ? null : text === 'true'
  }
}
