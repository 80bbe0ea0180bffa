/** Reads the text of a Corefile into servers and directives (L3), whatever they are. Pure. Upstream: CoreDNS, corefile(5). */

export interface Directive {
  readonly name: string
  readonly args: readonly string[]
  readonly line: number
  /** The lines between its braces. */
  readonly options: readonly Directive[]
}

export interface ServerBlock {
  /** Zones, with or without a port. */
  readonly keys: readonly string[]
  readonly line: number
  readonly directives: readonly Directive[]
}

interface Token {
  readonly text: string
  readonly line: number
  readonly isQuoted: boolean
}

/** @throws CorefileError */
export class CorefileError extends Error {
  constructor(line: number, reason: string) {
    super(`Corefile:${line}: ${reason}`)
    this.name = 'CorefileError'
  }
}

/** A Corefile of more bytes is refused: each node reads it. */
const maxBytes = 256 * 1024

/** @throws CorefileError */
export function readCorefile(text: string): ServerBlock[] {
  if (text.length > maxBytes) throw new CorefileError(1, `has more than ${maxBytes} bytes`)
  const reader = new Reader(tokensOf(text))
  const blocks: ServerBlock[] = []
  for (;;) {
    const line = reader.line()
    if (!line) return blocks
    const last = line.at(-1)
    if (!last || !isBrace(last, '{')) throw new CorefileError(line[0]?.line ?? 1, 'a server needs a block in braces')
    const keys = line.slice(0, -1).flatMap(({ text: key }) => key.split(',').filter((one) => one !== ''))
    if (keys.length === 0) throw new CorefileError(last.line, 'a block without a zone')
    blocks.push({ keys, line: last.line, directives: reader.block(1) })
  }
}

class Reader {
  readonly #lines: Token[][]
  #at = 0

  constructor(tokens: readonly Token[]) {
    const lines = new Map<number, Token[]>()
    for (const token of tokens) lines.set(token.line, [...(lines.get(token.line) ?? []), token])
    this.#lines = [...lines.values()]
  }

  line(): Token[] | undefined {
    return this.#lines[this.#at++]
  }

  /** Directives until the closing brace. @throws CorefileError */
  block(depth: number): Directive[] {
    const directives: Directive[] = []
    for (let line = this.line(); line; line = this.line()) {
      const [first, ...rest] = line
      if (!first) continue
      if (isBrace(first, '}')) {
        if (rest.length > 0) throw new CorefileError(first.line, `"${rest[0]?.text}" behind a closing brace`)
        return directives
      }
      directives.push(this.#directive(first, rest, depth))
    }
    throw new CorefileError(this.#lines.at(-1)?.[0]?.line ?? 1, 'a closing brace is missing')
  }

  #directive(first: Token, rest: Token[], depth: number): Directive {
    const opens = rest.findIndex((token) => isBrace(token, '{'))
    const args = (opens < 0 ? rest : rest.slice(0, opens)).map(({ text }) => text)
    const directive = { name: first.text, line: first.line, args }
    if (opens < 0) return { ...directive, options: [] }
    if (depth > 2) throw new CorefileError(first.line, 'blocks are nested too deeply')
    const within = rest.slice(opens + 1)
    if (within.length === 0) return { ...directive, options: this.block(depth + 1) }
    const [only, ...more] = within.slice(0, -1)
    if (!isBrace(within.at(-1) as Token, '}')) throw new CorefileError(first.line, 'a brace opens in the middle of a line')
    return { ...directive, options: only ? [{ name: only.text, line: only.line, args: more.map(({ text }) => text), options: [] }] : [] }
  }
}

function isBrace({ text, isQuoted }: Token, brace: '{' | '}'): boolean {
  return !isQuoted && text === brace
}

/** Words, and texts in quotes; `#` begins a comment. @throws CorefileError */
function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const number = index + 1
    for (const [word, quoted] of line.matchAll(/"((?:[^"\\]|\\.)*)"|#.*$|[^\s"#][^\s]*|"/g)) {
      if (word.startsWith('#')) break
      if (word === '"') throw new CorefileError(number, 'a quote is not closed')
      tokens.push({ text: quoted === undefined ? word : unquoted(quoted), line: number, isQuoted: quoted !== undefined })
    }
  }
  return tokens
}

/** A backslash before anything but a quote stays. */
const unquoted = (text: string) => text.replace(/\\./gs, (pair) => (pair === '\\"' ? '"' : pair))
