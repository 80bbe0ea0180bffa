/**
 * JSON as the API server reads it (L1): a fast parse, and, when asked for, the paths of duplicate fields. Malformed input is refused in
 * Go's words. Upstream: sigs.k8s.io/json and apimachinery/pkg/runtime/serializer/json (v1.36).
 *
 * Numbers become doubles. Integers that a double cannot hold exactly are refused where the schema says integer (schema/decode.ts); in
 * free-form parts of an object they are rounded.
 */

/** As deep as upstream's parser goes. */
const maxDepth = 10_000
/** Deeper values are refused here: recursion over an object must fit the stack. */
const maxUsefulDepth = 1_000

export interface ParsedJson {
  readonly value: unknown
  /** Paths such as `spec.containers[0].image` that occur twice; empty unless asked for. */
  readonly duplicates: readonly string[]
}

/** Input that is not JSON, with Go's text ("invalid character '}' looking for beginning of value"). */
export class JsonSyntaxError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'JsonSyntaxError'
  }
}

/**
 * Parses a whole JSON document.
 * @param options.duplicates also look for duplicate fields (fieldValidation Warn and Strict): a second, slower pass.
 * @throws JsonSyntaxError
 */
export function parseJson(input: Uint8Array | string, options: { duplicates?: boolean } = {}): ParsedJson {
  const text = typeof input === 'string' ? input : Buffer.from(input.buffer, input.byteOffset, input.byteLength).toString('utf8')
  if (tooDeep(text)) throw new JsonSyntaxError('exceeded max depth')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    new Scanner(text).scan()
    // V8 refuses what the scanner accepts: never seen, but the caller must get an error.
    throw new JsonSyntaxError(error instanceof Error ? error.message : String(error))
  }
  return { value, duplicates: options.duplicates ? new Scanner(text).scan() : [] }
}

function tooDeep(text: string): boolean {
  if (text.length < 2 * maxUsefulDepth) return false
  let depth = 0
  let inString = false
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (inString) {
      if (c === 0x5c) i++
      else if (c === 0x22) inString = false
    } else if (c === 0x22) inString = true
    else if (c === 0x7b || c === 0x5b) {
      if (++depth > maxUsefulDepth) return true
    } else if (c === 0x7d || c === 0x5d) depth--
  }
  return false
}

/** Walks a document without building it: finds duplicates, or says in Go's words where it is malformed. */
class Scanner {
  readonly #text: string
  #position = 0
  readonly #duplicates: string[] = []

  constructor(text: string) {
    this.#text = text
  }

  /** @returns the paths of duplicate fields, in document order. */
  scan(): readonly string[] {
    this.#value('', 0)
    this.#space()
    if (this.#position < this.#text.length) this.#fail('after top-level value')
    return this.#duplicates
  }

  #space(): void {
    while (this.#position < this.#text.length && ' \t\r\n'.includes(this.#text[this.#position] ?? 'x')) this.#position++
  }

  #fail(context: string): never {
    if (this.#position >= this.#text.length) throw new JsonSyntaxError('unexpected end of JSON input')
    throw new JsonSyntaxError(`invalid character ${quoteCharacter(this.#text[this.#position] ?? '')} ${context}`)
  }

  #value(path: string, depth: number): void {
    if (depth > maxDepth) throw new JsonSyntaxError('exceeded max depth')
    this.#space()
    const c = this.#text[this.#position]
    if (c === '{') this.#object(path, depth)
    else if (c === '[') this.#array(path, depth)
    else if (c === '"') this.#string()
    else if (c === '-' || (c !== undefined && c >= '0' && c <= '9')) this.#number()
    else if (c === 't') this.#literal('true')
    else if (c === 'f') this.#literal('false')
    else if (c === 'n') this.#literal('null')
    else this.#fail('looking for beginning of value')
  }

  #object(path: string, depth: number): void {
    const seen = new Set<string>()
    this.#position++
    this.#space()
    if (this.#text[this.#position] === '}') {
      this.#position++
      return
    }
    for (;;) {
      this.#space()
      if (this.#text[this.#position] !== '"') this.#fail('looking for beginning of object key string')
      const key = this.#string()
      const child = path === '' ? key : `${path}.${key}`
      if (seen.has(key)) this.#duplicates.push(child)
      seen.add(key)
      this.#space()
      if (this.#text[this.#position] !== ':') this.#fail('after object key')
      this.#position++
      this.#value(child, depth + 1)
      this.#space()
      const c = this.#text[this.#position]
      if (c === '}') break
      if (c !== ',') this.#fail('after object key:value pair')
      this.#position++
    }
    this.#position++
  }

  #array(path: string, depth: number): void {
    this.#position++
    this.#space()
    if (this.#text[this.#position] === ']') {
      this.#position++
      return
    }
    for (let index = 0; ; index++) {
      this.#value(`${path}[${index}]`, depth + 1)
      this.#space()
      const c = this.#text[this.#position]
      if (c === ']') break
      if (c !== ',') this.#fail('after array element')
      this.#position++
    }
    this.#position++
  }

  #string(): string {
    const start = this.#position
    this.#position++
    for (;;) {
      const c = this.#text[this.#position]
      if (c === undefined) this.#fail('')
      if (c === '"') break
      if (c < ' ') this.#fail('in string literal')
      if (c === '\\') {
        this.#position++
        const escaped = this.#text[this.#position]
        if (escaped === undefined || !'"\\/bfnrtu'.includes(escaped)) this.#fail('in string escape code')
        if (escaped === 'u') {
          for (let i = 0; i < 4; i++) {
            this.#position++
            if (!/[0-9a-fA-F]/.test(this.#text[this.#position] ?? '')) this.#fail('in \\u hexadecimal character escape')
          }
        }
      }
      this.#position++
    }
    this.#position++
    return JSON.parse(this.#text.slice(start, this.#position)) as string
  }

  #number(): void {
    if (this.#text[this.#position] === '-') {
      this.#position++
      if (!this.#digit()) this.#fail('in numeric literal')
    }
    if (this.#text[this.#position] === '0') this.#position++
    else this.#digits()
    if (this.#text[this.#position] === '.') {
      this.#position++
      if (!this.#digit()) this.#fail('after decimal point in numeric literal')
      this.#digits()
    }
    if (this.#text[this.#position] === 'e' || this.#text[this.#position] === 'E') {
      this.#position++
      if (this.#text[this.#position] === '+' || this.#text[this.#position] === '-') this.#position++
      if (!this.#digit()) this.#fail('in exponent of numeric literal')
      this.#digits()
    }
  }

  #digit(): boolean {
    const c = this.#text[this.#position]
    return c !== undefined && c >= '0' && c <= '9'
  }

  #digits(): void {
    while (this.#digit()) this.#position++
  }

  #literal(literal: string): void {
    for (let i = 0; i < literal.length; i++, this.#position++) {
      if (this.#text[this.#position] !== literal[i]) this.#fail(`in literal ${literal} (expecting ${quoteCharacter(literal[i] ?? '')})`)
    }
  }
}

/** Go's %q-like form of a character in its syntax errors. */
function quoteCharacter(c: string): string {
  if (c === "'") return "'\\''"
  if (c === '"') return `'"'`
  return `'${JSON.stringify(c).slice(1, -1)}'`
}
