/**
 * Cuts an expression into tokens (L1, pure). One sticky regular expression per kind of token, none of which can backtrack badly.
 * Upstream: cel-go parser/gen/CEL.g4 (v0.26), lexical rules.
 */

export type TokenKind = 'identifier' | 'int' | 'uint' | 'double' | 'string' | 'bytes' | 'symbol' | 'end'

export interface Token {
  readonly kind: TokenKind
  /** As written; for symbols and keywords this is what the parser compares with. */
  readonly text: string
  readonly offset: number
}

/** A fault of the expression's text. Caught by the front door, never seen outside. */
export class SyntaxFault extends Error {
  readonly offset: number
  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

/** Words that are symbols of the grammar, never identifiers. */
const wordSymbols = new Set(['in', 'true', 'false', 'null'])

const space = /(?:[ \t\r\n\f]+|\/\/[^\n]*)*/y
const number = /0x[0-9a-fA-F]+[uU]?|(?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+[uU]?/y
const string =
  /(?:[bB]?[rR]|[rR][bB])(?:"""(?:[^"]|"(?!""))*"""|'''(?:[^']|'(?!''))*'''|"[^"\n\r]*"|'[^'\n\r]*')|[bB]?(?:"""(?:[^"\\]|\\[\s\S]|"(?!""))*"""|'''(?:[^'\\]|\\[\s\S]|'(?!''))*'''|"(?:[^"\\\n\r]|\\[^\n\r])*"|'(?:[^'\\\n\r]|\\[^\n\r])*')/y
const word = /[_a-zA-Z][_a-zA-Z0-9]*/y
const symbol = /==|!=|<=|>=|&&|\|\||[<>[\]{}().,\-!?:+*/%]/y

function match(pattern: RegExp, source: string, offset: number): string | undefined {
  pattern.lastIndex = offset
  return pattern.exec(source)?.[0]
}

/** All tokens, the last of kind `end`. @throws SyntaxFault for a character that starts no token. */
export function tokenize(source: string): Token[] {
  const tokens: Token[] = []
  let offset = match(space, source, 0)!.length
  while (offset < source.length) {
    const token = tokenAt(source, offset)
    tokens.push(token)
    offset += token.text.length
    offset += match(space, source, offset)?.length ?? 0
  }
  tokens.push({ kind: 'end', text: '<EOF>', offset: source.length })
  return tokens
}

function tokenAt(source: string, offset: number): Token {
  const text = match(string, source, offset)
  if (text !== undefined) return { kind: /^[rR]?[bB]/.test(text) ? 'bytes' : 'string', text, offset }
  const digits = match(number, source, offset)
  if (digits !== undefined) return { kind: numberKind(digits), text: digits, offset }
  const name = match(word, source, offset)
  if (name !== undefined) return { kind: wordSymbols.has(name) ? 'symbol' : 'identifier', text: name, offset }
  const mark = match(symbol, source, offset)
  if (mark !== undefined) return { kind: 'symbol', text: mark, offset }
  const [character] = source.slice(offset)
  // An opening quote that is never closed swallows the line, as upstream's lexer reports it.
  const bad = character === '"' || character === "'" ? source.slice(offset).split('\n')[0]! : character!
  throw new SyntaxFault(`Syntax error: token recognition error at: '${bad}'`, offset)
}

function numberKind(text: string): TokenKind {
  if (/[uU]$/.test(text)) return 'uint'
  return !text.startsWith('0x') && /[.eE]/.test(text) ? 'double' : 'int'
}
