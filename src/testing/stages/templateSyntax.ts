/**
 * Reads the part of Go's template language that Stage files use (testing): text, variables, if, range, with, pipelines of function calls. What is
 * not part of it (define, template, block, break, continue, methods) is refused by name, when the file is read and not when it is played.
 * Evaluating is template.ts's work. Upstream: Go text/template/parse.
 */
import { bareMap } from '#base/bareMap'

export type TemplateNode =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'print'; readonly pipe: Pipe }
  | { readonly type: 'set'; readonly name: string; readonly declares: boolean; readonly pipe: Pipe }
  | { readonly type: 'if' | 'with'; readonly pipe: Pipe; readonly then: readonly TemplateNode[]; readonly otherwise: readonly TemplateNode[] }
  | {
      readonly type: 'range'
      readonly pipe: Pipe
      /** Names for index and item, or for the item alone. */
      readonly names: readonly string[]
      readonly then: readonly TemplateNode[]
      readonly otherwise: readonly TemplateNode[]
    }

/** Each command gets the result of the one before as its last argument. */
export type Pipe = readonly Command[]
/** The first operand may be a function's name; else there is only one. */
export type Command = readonly Operand[]

export type Operand =
  | { readonly type: 'literal'; readonly value: unknown }
  | { readonly type: 'function'; readonly name: string }
  /** Fields of the dot, of a variable (`$` is the whole object), or of what a pipeline in parentheses gives. */
  | { readonly type: 'path'; readonly of: 'dot' | { readonly variable: string } | { readonly pipe: Pipe }; readonly fields: readonly string[] }

export class TemplateError extends Error {}

interface Token {
  readonly kind: 'field' | 'variable' | 'word' | 'literal' | 'sign'
  readonly text: string
  readonly value?: unknown
  /** Whether white space stands before it: `.a .b` are two operands, `.a.b` is one. */
  readonly spaced: boolean
}

type Piece = { readonly text: string } | { readonly tokens: readonly Token[]; readonly source: string }

const tokenPattern =
  /(?<space>\s+)|(?<string>"(?:[^"\\\n]|\\.)*")|`(?<raw>[^`]*)`|(?<number>[-+]?\d+(?:\.\d+)?)|(?<field>\.[A-Za-z_]\w*)|(?<variable>\$\w*)|(?<word>[A-Za-z_]\w*)|(?<sign>:=|=|\||\(|\)|,|\.)/y

function tokenize(source: string): Token[] {
  const tokens: Token[] = []
  let spaced = true
  for (let at = 0; at < source.length; at = tokenPattern.lastIndex) {
    tokenPattern.lastIndex = at
    const groups = tokenPattern.exec(source)?.groups
    if (!groups) throw new TemplateError(`{{${source}}}: unexpected ${JSON.stringify(source[at])}`)
    if (groups.space !== undefined) {
      spaced = true
      tokenPattern.lastIndex = at + groups.space.length
      continue
    }
    tokens.push(tokenOf(groups, spaced))
    spaced = false
  }
  return tokens
}

const words: Readonly<Record<string, unknown>> = bareMap({ true: true, false: false, nil: null })

function tokenOf(groups: Readonly<Record<string, string | undefined>>, spaced: boolean): Token {
  if (groups.string !== undefined) return { kind: 'literal', text: groups.string, value: JSON.parse(groups.string), spaced }
  if (groups.raw !== undefined) return { kind: 'literal', text: groups.raw, value: groups.raw, spaced }
  if (groups.number !== undefined) return { kind: 'literal', text: groups.number, value: Number(groups.number), spaced }
  if (groups.field !== undefined) return { kind: 'field', text: groups.field.slice(1), spaced }
  if (groups.variable !== undefined) return { kind: 'variable', text: groups.variable, spaced }
  if (groups.word === undefined) return { kind: 'sign', text: groups.sign ?? '', spaced }
  if (Object.hasOwn(words, groups.word)) return { kind: 'literal', text: groups.word, value: words[groups.word], spaced }
  return { kind: 'word', text: groups.word, spaced }
}

/** Text and actions in turn; `{{-` and `-}}` remove the white space next to them. */
function pieces(template: string): Piece[] {
  const out: Piece[] = []
  let trimNext = false
  let at = 0
  const text = (raw: string, trimEnd: boolean) => {
    const started = trimNext ? raw.trimStart() : raw
    const trimmed = trimEnd ? started.trimEnd() : started
    if (trimmed !== '') out.push({ text: trimmed })
  }
  for (let start = template.indexOf('{{'); start >= 0; start = template.indexOf('{{', at)) {
    const end = template.indexOf('}}', start)
    if (end < 0) throw new TemplateError(`{{${template.slice(start + 2, start + 42)}: not closed`)
    const action = template.slice(start + 2, end)
    text(template.slice(at, start), /^-\s/.test(action))
    trimNext = /\s-$/.test(action)
    const source = action.replace(/^-\s/, '').replace(/\s-$/, '').trim()
    if (!source.startsWith('/*')) out.push({ tokens: tokenize(source), source })
    at = end + 2
  }
  text(template.slice(at), false)
  return out
}

/** @throws TemplateError naming the action that is not understood, or the function that does not exist */
export function parseTemplate(template: string, isFunction: (name: string) => boolean): readonly TemplateNode[] {
  const parser = new Parser(pieces(template.trim()), isFunction)
  const { nodes, ending } = parser.block()
  if (ending !== undefined) throw new TemplateError(`{{${ending}}}: nothing is open`)
  return nodes
}

const notSupported = new Set(['define', 'template', 'block', 'break', 'continue'])

class Parser {
  readonly #pieces: readonly Piece[]
  readonly #isFunction: (name: string) => boolean
  #at = 0

  constructor(pieces: readonly Piece[], isFunction: (name: string) => boolean) {
    this.#pieces = pieces
    this.#isFunction = isFunction
  }

  /** Up to an end, else or else-if, which is given back with its tokens; or up to the end of the template. */
  block(): { nodes: TemplateNode[]; ending?: string; rest?: TokenReader } {
    const nodes: TemplateNode[] = []
    for (let piece = this.#pieces[this.#at++]; piece; piece = this.#pieces[this.#at++]) {
      if ('text' in piece) {
        nodes.push({ type: 'text', text: piece.text })
        continue
      }
      const reader = new TokenReader(piece.tokens, piece.source, this.#isFunction)
      const word = reader.keyword()
      if (word === 'end' || word === 'else') return { nodes, ending: word, rest: reader }
      nodes.push(this.#action(word, reader))
    }
    return { nodes }
  }

  #action(word: string | undefined, reader: TokenReader): TemplateNode {
    if (word === undefined) {
      const assignment = reader.assignment()
      const pipe = reader.pipe()
      reader.end()
      return assignment ? { type: 'set', ...assignment, pipe } : { type: 'print', pipe }
    }
    if (notSupported.has(word)) throw new TemplateError(`{{${reader.source}}}: ${word} is not supported`)
    if (word !== 'range') return this.#branch(word as 'if' | 'with', reader)
    const names = reader.rangeNames()
    const pipe = reader.pipe()
    reader.end()
    return { type: 'range', names, pipe, ...this.#bodies(reader.source) }
  }

  #branch(type: 'if' | 'with', reader: TokenReader): TemplateNode {
    const assignment = reader.assignment()
    if (assignment) throw new TemplateError(`{{${reader.source}}}: a variable declared in ${type} is not supported; declare it before`)
    const pipe = reader.pipe()
    reader.end()
    return { type, pipe, ...this.#bodies(reader.source) }
  }

  #bodies(opened: string): { then: readonly TemplateNode[]; otherwise: readonly TemplateNode[] } {
    const { nodes: then, ending, rest } = this.block()
    if (ending === undefined || !rest) throw new TemplateError(`{{${opened}}}: not ended`)
    if (ending === 'end') return { then, otherwise: [] }
    const word = rest.keyword()
    // An else-if is a nested if that shares the `end` of the outer one.
    if (word === 'if' || word === 'with') return { then, otherwise: [this.#branch(word, rest)] }
    rest.end()
    const { nodes: otherwise, ending: last } = this.block()
    if (last !== 'end') throw new TemplateError(`{{${opened}}}: not ended`)
    return { then, otherwise }
  }
}

const keywords = new Set(['if', 'else', 'end', 'range', 'with', ...notSupported])

class TokenReader {
  readonly source: string
  readonly #tokens: readonly Token[]
  readonly #isFunction: (name: string) => boolean
  #at = 0

  constructor(tokens: readonly Token[], source: string, isFunction: (name: string) => boolean) {
    this.#tokens = tokens
    this.source = source
    this.#isFunction = isFunction
  }

  keyword(): string | undefined {
    const token = this.#tokens[this.#at]
    if (token?.kind !== 'word' || !keywords.has(token.text)) return undefined
    this.#at++
    return token.text
  }

  assignment(): { readonly name: string; readonly declares: boolean } | undefined {
    const [name, sign] = this.#tokens.slice(this.#at)
    if (name?.kind !== 'variable' || (sign?.text !== ':=' && sign?.text !== '=')) return undefined
    this.#at += 2
    return { name: name.text, declares: sign.text === ':=' }
  }

  rangeNames(): string[] {
    const sign = this.#tokens.findIndex(({ text, kind }) => kind === 'sign' && text === ':=')
    if (sign < 0) return []
    const names = this.#tokens.slice(this.#at, sign).filter(({ text }) => text !== ',')
    if (names.length > 2 || names.some(({ kind }) => kind !== 'variable')) throw this.#fault(':=')
    this.#at = sign + 1
    return names.map(({ text }) => text)
  }

  pipe(): Pipe {
    const commands: Command[] = []
    do commands.push(this.#command())
    while (this.#take('|'))
    return commands
  }

  end(): void {
    const token = this.#tokens[this.#at]
    if (token) throw this.#fault(token.text)
  }

  #command(): Command {
    const operands: Operand[] = []
    for (let operand = this.#operand(); operand; operand = this.#operand()) operands.push(operand)
    const [first] = operands
    if (!first) throw this.#fault('nothing')
    if (operands.length > 1 && first.type !== 'function') throw new TemplateError(`{{${this.source}}}: only functions take arguments`)
    return operands
  }

  #operand(): Operand | undefined {
    const token = this.#tokens[this.#at]
    if (!token || (token.kind === 'sign' && token.text !== '(' && token.text !== '.')) return undefined
    this.#at++
    if (token.kind === 'literal') return { type: 'literal', value: token.value }
    if (token.kind === 'word') {
      if (!this.#isFunction(token.text)) throw new TemplateError(`{{${this.source}}}: function "${token.text}" is not supported`)
      return { type: 'function', name: token.text }
    }
    if (token.kind === 'variable') return { type: 'path', of: { variable: token.text }, fields: this.#fields() }
    if (token.kind === 'field') return { type: 'path', of: 'dot', fields: [token.text, ...this.#fields()] }
    if (token.text === '.') return { type: 'path', of: 'dot', fields: [] }
    const pipe = this.pipe()
    if (!this.#take(')')) throw this.#fault('the end, instead of ")"')
    return { type: 'path', of: { pipe }, fields: this.#fields() }
  }

  #fields(): string[] {
    const fields: string[] = []
    for (let token = this.#tokens[this.#at]; token?.kind === 'field' && !token.spaced; token = this.#tokens[this.#at]) {
      fields.push(token.text)
      this.#at++
    }
    return fields
  }

  #take(sign: string): boolean {
    const token = this.#tokens[this.#at]
    if (token?.kind !== 'sign' || token.text !== sign) return false
    this.#at++
    return true
  }

  #fault(found: string): TemplateError {
    return new TemplateError(`{{${this.source}}}: unexpected ${found}`)
  }
}
