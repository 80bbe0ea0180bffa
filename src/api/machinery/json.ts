/**
 * JSON as the API server reads it (L1): a fast parse, and, when asked for, the paths of duplicate fields. Malformed input is refused in
 * Go's words. Upstream: sigs.k8s.io/json and apimachinery/pkg/runtime/serializer/json (v1.36).
 *
 * Numbers become doubles, and int64 integers that no double holds become bigints (./exactIntegers.ts), as upstream's decoder keeps int64s. Fields of
 * built-in kinds refuse them (schema/decode.ts): components compute with these as doubles.
 */
import { messageOf } from '#base/messageOf'
import type { Steps } from '#base/steps'
import { exactNumber, hasLongInteger, longDigits } from './exactIntegers.ts'
import { getOwn, isObject, type JsonObject } from './objects.ts'

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
 * JSON.parse, but long integers keep their digits. For JSON that is known to be of ordinary depth.
 * @param onLong is called with a value that may have long integers
 * @throws SyntaxError
 */
export function parseExactly(input: Uint8Array | string, onLong: (value: unknown) => void = () => {}): unknown {
  const text = textOf(input)
  const parsed: unknown = JSON.parse(text)
  if (!hasLongInteger(input)) return parsed
  const { value } = new Scanner(text, true).scan(parsed)
  onLong(value)
  return value
}

function textOf(input: Uint8Array | string): string {
  return typeof input === 'string' ? input : Buffer.from(input.buffer, input.byteOffset, input.byteLength).toString('utf8')
}

/**
 * Parses a whole JSON document.
 * @param options.duplicates also look for duplicate fields (fieldValidation Warn and Strict): a second, slower pass.
 * @throws JsonSyntaxError
 */
export function parseJson(input: Uint8Array | string, options: ParseOptions = {}): ParsedJson {
  const text = textOf(input)
  return scanned(input, text, parsedText(text), options)
}

/** {@link parseJson}; pauses before the second pass. */
export function* parsingJson(input: Uint8Array | string, options: ParseOptions = {}): Steps<ParsedJson> {
  const text = textOf(input)
  const value = parsedText(text)
  yield
  return scanned(input, text, value, options)
}

interface ParseOptions {
  readonly duplicates?: boolean
}

function parsedText(text: string): unknown {
  if (tooDeep(text)) throw new JsonSyntaxError('exceeded max depth')
  try {
    return JSON.parse(text)
  } catch (error) {
    new Scanner(text, false).scan(undefined)
    // V8 refuses what the scanner accepts: never seen, but the caller must get an error.
    throw new JsonSyntaxError(messageOf(error))
  }
}

function scanned(input: Uint8Array | string, text: string, value: unknown, { duplicates = false }: ParseOptions): ParsedJson {
  const isLong = hasLongInteger(input)
  if (!duplicates && !isLong) return { value, duplicates: [] }
  const found = new Scanner(text, true).scan(isLong ? value : undefined)
  return { value: isLong ? found.value : value, duplicates: duplicates ? found.duplicates : [] }
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

/**
 * Walks a document next to the value that was parsed from it: finds duplicates and puts long integers into the value exactly, or throws Go's error with the
 * place where the document is malformed.
 */
class Scanner {
  readonly #text: string
  /** The text is known to be JSON: strings need no look at each character. */
  readonly #isValid: boolean
  #position = 0
  /** Keys and indexes that lead to where the scanner is. */
  readonly #path: (string | number)[] = []
  readonly #duplicates: string[] = []

  constructor(text: string, isValid: boolean) {
    this.#text = text
    this.#isValid = isValid
  }

  /** @param parsed what the native parser made of the text, changed in place; undefined when only duplicates matter. @returns the paths of duplicate fields in document order */
  scan(parsed: unknown): ParsedJson {
    const value = this.#value(parsed)
    this.#space()
    if (this.#position < this.#text.length) this.#fail('after top-level value')
    return { value, duplicates: this.#duplicates }
  }

  /** The character code here, past white space; NaN at the end. */
  #space(): number {
    for (;;) {
      const c = this.#text.charCodeAt(this.#position)
      if (c !== code.space && c !== code.newline && c !== code.tab && c !== code.return) return c
      this.#position++
    }
  }

  #fail(context: string): never {
    if (this.#position >= this.#text.length) throw new JsonSyntaxError('unexpected end of JSON input')
    throw new JsonSyntaxError(`invalid character ${quoteCharacter(this.#text[this.#position] ?? '')} ${context}`)
  }

  /** @param parsed the value at this place, where the last of duplicate fields stands in for all. @returns it with exact integers */
  #value(parsed: unknown): unknown {
    if (this.#path.length > maxDepth) throw new JsonSyntaxError('exceeded max depth')
    const c = this.#space()
    if (c === code.quote) this.#string()
    else if (c === code.openBrace) this.#object(isObject(parsed) ? parsed : undefined)
    else if (c === code.openBracket) this.#array(Array.isArray(parsed) ? parsed : undefined)
    else if (c === code.minus || isDigit(c)) return this.#number(parsed)
    else if (c === code.t) this.#literal('true')
    else if (c === code.f) this.#literal('false')
    else if (c === code.n) this.#literal('null')
    else this.#fail('looking for beginning of value')
    return parsed
  }

  #object(members: JsonObject | undefined): void {
    const seen = new Set<string>()
    this.#position++
    if (this.#space() === code.closeBrace) {
      this.#position++
      return
    }
    for (;;) {
      if (this.#space() !== code.quote) this.#fail('looking for beginning of object key string')
      const key = this.#key()
      this.#path.push(key)
      const known = seen.size
      if (seen.add(key).size === known) this.#duplicates.push(pathText(this.#path))
      if (this.#space() !== code.colon) this.#fail('after object key')
      this.#position++
      const member = members && getOwn(members, key)
      const exact = this.#value(member)
      if (members && exact !== member) members[key] = exact
      this.#path.pop()
      const c = this.#space()
      if (c === code.closeBrace) break
      if (c !== code.comma) this.#fail('after object key:value pair')
      this.#position++
    }
    this.#position++
  }

  #array(items: unknown[] | undefined): void {
    this.#position++
    if (this.#space() === code.closeBracket) {
      this.#position++
      return
    }
    for (let index = 0; ; index++) {
      this.#path.push(index)
      const item = items?.[index]
      const exact = this.#value(item)
      if (items && exact !== item) items[index] = exact
      this.#path.pop()
      const c = this.#space()
      if (c === code.closeBracket) break
      if (c !== code.comma) this.#fail('after array element')
      this.#position++
    }
    this.#position++
  }

  #key(): string {
    const start = this.#position
    this.#string()
    const key = this.#text.slice(start + 1, this.#position - 1)
    return key.includes('\\') ? (JSON.parse(`"${key}"`) as string) : key
  }

  #string(): void {
    if (this.#isValid) {
      const end = this.#text.indexOf('"', this.#position + 1)
      if (this.#text.charCodeAt(end - 1) !== code.backslash) {
        this.#position = end + 1
        return
      }
    }
    for (this.#position++; ; this.#position++) {
      const c = this.#text.charCodeAt(this.#position)
      if (c === code.quote) break
      if (c === code.backslash) this.#escape()
      else if (!(c >= code.space)) this.#fail('in string literal')
    }
    this.#position++
  }

  #escape(): void {
    this.#position++
    const escaped = this.#text[this.#position]
    if (escaped === undefined || !'"\\/bfnrtu'.includes(escaped)) this.#fail('in string escape code')
    if (escaped !== 'u') return
    for (let i = 0; i < 4; i++) {
      this.#position++
      if (!/[0-9a-fA-F]/.test(this.#text[this.#position] ?? '')) this.#fail('in \\u hexadecimal character escape')
    }
  }

  #number(parsed: unknown): unknown {
    const start = this.#position
    if (this.#code() === code.minus) {
      this.#position++
      if (!isDigit(this.#code())) this.#fail('in numeric literal')
    }
    if (this.#code() === code.zero) this.#position++
    else this.#digits()
    const end = this.#position
    if (this.#code() === code.point) {
      this.#position++
      if (!isDigit(this.#code())) this.#fail('after decimal point in numeric literal')
      this.#digits()
    }
    if (this.#code() === code.e || this.#code() === code.capitalE) {
      this.#position++
      if (this.#code() === code.plus || this.#code() === code.minus) this.#position++
      if (!isDigit(this.#code())) this.#fail('in exponent of numeric literal')
      this.#digits()
    }
    return this.#position - start < longDigits ? parsed : exactNumber(this.#text.slice(start, this.#position), end === this.#position, parsed)
  }

  #code(): number {
    return this.#text.charCodeAt(this.#position)
  }

  #digits(): void {
    while (isDigit(this.#code())) this.#position++
  }

  #literal(literal: string): void {
    for (let i = 0; i < literal.length; i++, this.#position++) {
      if (this.#text[this.#position] !== literal[i]) this.#fail(`in literal ${literal} (expecting ${quoteCharacter(literal[i] ?? '')})`)
    }
  }
}

/** The characters that JSON is made of. */
const code = {
  tab: 0x09,
  newline: 0x0a,
  return: 0x0d,
  space: 0x20,
  quote: 0x22,
  plus: 0x2b,
  comma: 0x2c,
  minus: 0x2d,
  point: 0x2e,
  zero: 0x30,
  nine: 0x39,
  colon: 0x3a,
  capitalE: 0x45,
  openBracket: 0x5b,
  backslash: 0x5c,
  closeBracket: 0x5d,
  e: 0x65,
  f: 0x66,
  n: 0x6e,
  t: 0x74,
  openBrace: 0x7b,
  closeBrace: 0x7d,
} as const

function isDigit(c: number): boolean {
  return c >= code.zero && c <= code.nine
}

/** `spec.containers[0].image`. */
function pathText(path: readonly (string | number)[]): string {
  return path.reduce<string>((text, step) => (typeof step === 'number' ? `${text}[${step}]` : text === '' ? step : `${text}.${step}`), '')
}

/** Go's %q-like form of a character in its syntax errors. */
function quoteCharacter(c: string): string {
  if (c === "'") return "'\\''"
  if (c === '"') return `'"'`
  return `'${JSON.stringify(c).slice(1, -1)}'`
}
