/**
 * The value of a string or bytes literal (L1, pure): quotes off, escapes resolved.
 * Upstream: cel-go parser/unescape.go (v0.26).
 */
import { bareMap } from '#base/bareMap'

/** Why a literal has no value. Caught by the parser. */
export class EscapeFault extends Error {}

const simple: Readonly<Record<string, string>> = bareMap({
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '`': '`',
  '?': '?',
})
const hexDigits: Readonly<Record<string, number>> = bareMap({ x: 2, X: 2, u: 4, U: 8 })

/** The text between the quotes, and whether escapes mean themselves (a raw literal). */
function body(literal: string): { text: string; raw: boolean } {
  const prefix = /^[bBrR]*/.exec(literal)![0]
  const quoted = literal.slice(prefix.length).replace(/\r\n?/g, '\n')
  const quotes = quoted.startsWith('"""') || quoted.startsWith("'''") ? 3 : 1
  return { text: quoted.slice(quotes, -quotes), raw: /r/i.test(prefix) }
}

/** @throws EscapeFault */
export function unescapeString(literal: string): string {
  const { text, raw } = body(literal)
  if (raw || !text.includes('\\')) return text
  let out = ''
  for (const part of parts(text)) out += typeof part === 'string' ? part : character(part.code)
  return out
}

/** Escapes above \x7f stand for one byte, other text for its UTF-8. @throws EscapeFault */
export function unescapeBytes(literal: string): Uint8Array {
  const { text, raw } = body(literal)
  const encoder = new TextEncoder()
  if (raw || !text.includes('\\')) return encoder.encode(text)
  const bytes: number[] = []
  for (const part of parts(text)) {
    if (typeof part === 'string') bytes.push(...encoder.encode(part))
    else if (part.unicode) throw new EscapeFault('unable to unescape string')
    else bytes.push(part.code)
  }
  return Uint8Array.from(bytes)
}

function character(code: number): string {
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) throw new EscapeFault('invalid unicode code point')
  return String.fromCodePoint(code)
}

/** Plain text and numeric escapes, in order. */
function* parts(text: string): Iterable<string | { code: number; unicode: boolean }> {
  for (let at = 0; at < text.length; ) {
    const slash = text.indexOf('\\', at)
    if (slash !== at) {
      const end = slash < 0 ? text.length : slash
      yield text.slice(at, end)
      at = end
      continue
    }
    const letter = text[at + 1]
    if (letter === undefined) throw new EscapeFault("unable to unescape string, found '\\' as last character")
    const plain = simple[letter]
    if (plain !== undefined) {
      yield plain
      at += 2
      continue
    }
    const { code, length } = numericEscape(text, at, letter)
    yield { code, unicode: letter === 'u' || letter === 'U' }
    at += length
  }
}

function numericEscape(text: string, at: number, letter: string): { code: number; length: number } {
  const digits = hexDigits[letter]
  if (digits !== undefined) {
    const hex = text.slice(at + 2, at + 2 + digits)
    if (hex.length < digits || !/^[0-9a-fA-F]+$/.test(hex)) throw new EscapeFault('unable to unescape string')
    return { code: Number.parseInt(hex, 16), length: 2 + digits }
  }
  if (!/[0-3]/.test(letter)) throw new EscapeFault('unable to unescape string')
  const octal = text.slice(at + 1, at + 4)
  if (!/^[0-3][0-7][0-7]$/.test(octal)) throw new EscapeFault('unable to unescape octal sequence in string')
  return { code: Number.parseInt(octal, 8), length: 4 }
}
