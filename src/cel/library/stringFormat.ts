/**
 * `'%s is %d'.format([name, age])` (L1, pure), with the number formats of the library version that Kubernetes has: %f groups digits
 * and %e writes a power of ten, as in American English. Upstream: cel-go ext/formatting.go (v0.26).
 */
import { bareMap } from '#base/bareMap'

import type { Value } from '../values.ts'
import { Double, Duration, EvaluationError, isInt, ListValue, MapValue, Timestamp, typeNameOf, Uint } from '../values.ts'
import { toText } from './conversions.ts'

const defaultPrecision = 6
/** More decimals than any double has; a larger precision would only make zeros. */
const maxPrecision = 1100

type Clause = (value: Value) => string

const formattingError = (message: string): EvaluationError => new EvaluationError(`error during formatting: ${message}`)
const clauseError = (message: string): EvaluationError => new EvaluationError(`could not parse formatting clause: ${message}`)

/** @throws EvaluationError for a bad clause, a missing argument, or an argument that the clause does not take. */
export function format(template: string, args: ListValue): string {
  const clause = /%(?:%|(\.(\d*))?([\s\S]?))/g
  let next = 0
  return template.replace(clause, (text: string, dotted: string | undefined, digits: string | undefined, letter: string | undefined) => {
    if (text === '%%') return '%'
    if (next >= args.size) throw new EvaluationError(`index ${next} out of range`)
    if (text === '%') throw new EvaluationError('unexpected end of string')
    const run = clauseOf(letter ?? '', dotted === undefined ? undefined : precisionOf(digits ?? '', letter ?? ''))
    return run(args.at(next++))
  })
}

function precisionOf(digits: string, letter: string): number {
  const bad = (message: string): EvaluationError => clauseError(`error while parsing precision: ${message}`)
  if (letter === '') throw bad('could not find end of precision specifier')
  if (digits === '') throw bad('error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax')
  if (Number(digits) > maxPrecision) throw bad(`precision ${digits} is above ${maxPrecision}`)
  return Number(digits)
}

function clauseOf(letter: string, precision: number = defaultPrecision): Clause {
  switch (letter) {
    case 's':
      return textOf
    case 'd':
      return decimal
    case 'f':
      return (value) => fixedPoint(asDouble(value, 'fixed-point'), precision)
    case 'e':
      return (value) => scientific(asDouble(value, 'scientific'), precision)
    case 'b':
      return binary
    case 'x':
      return hexadecimal
    case 'X':
      return (value) => hexadecimal(value).toUpperCase()
    case 'o':
      return octal
    default:
      throw clauseError(`unrecognized formatting clause "${letter}"`)
  }
}

/** What %s prints. */
function textOf(value: Value): string {
  if (value === null) return 'null'
  if (value instanceof ListValue) return listText(value)
  if (value instanceof MapValue) return mapText(value)
  const name = typeNameOf(value)
  const plain = ['string', 'bool', 'bytes', 'int', 'uint', 'double', 'type', 'google.protobuf.Duration', 'google.protobuf.Timestamp']
  if (!plain.includes(name)) {
    throw formattingError(
      `string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given ${name}`,
    )
  }
  return toText(value)
}

/** A value inside a list or a map, written as a literal. */
function literal(value: Value): string {
  if (typeof value === 'string') return goQuote(value)
  if (value instanceof Uint8Array) return `b${goQuote(toText(value))}`
  if (value instanceof Timestamp) return `timestamp(${goQuote(toText(value))})`
  if (value instanceof Duration) return `duration(${goQuote(toText(value))})`
  if (value instanceof Double) return Number.isFinite(value.value) ? plainFixed(value.value, defaultPrecision) : goQuote(toText(value))
  return textOf(value)
}

function listText(list: ListValue): string {
  return `[${Array.from({ length: list.size }, (_, i) => literal(list.at(i))).join(', ')}]`
}

function mapText(map: MapValue): string {
  const entries: [string, string][] = []
  for (const key of map.keys()) entries.push([literal(key), literal(map.get(key)!)])
  entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return `{${entries.map(([key, value]) => `${key}:${value}`).join(', ')}}`
}

/** Go's %q. */
function goQuote(text: string): string {
  const named: Record<string, string> = bareMap({ '\x07': '\\a', '\b': '\\b', '\f': '\\f', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\v': '\\v' })
  const escaped = text.replace(/[\\"]/g, '\\$&').replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    const code = character.codePointAt(0)!
    if (named[character]) return named[character]
    if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`
    return code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`
  })
  return `"${escaped}"`
}

function decimal(value: Value): string {
  if (isInt(value)) return String(value)
  if (value instanceof Uint) return String(value.value)
  throw formattingError(`decimal clause can only be used on integers, was given ${typeNameOf(value)}`)
}

const spelled: Readonly<Record<string, number>> = bareMap({ NaN: Number.NaN, Infinity: Number.POSITIVE_INFINITY, '-Infinity': Number.NEGATIVE_INFINITY })

function asDouble(value: Value, clause: string): number {
  if (value instanceof Double) return value.value
  const number = typeof value === 'string' ? spelled[value] : undefined
  if (number !== undefined) return number
  throw formattingError(`${clause} clause can only be used on doubles, was given ${typeNameOf(value)}`)
}

const notFinite = (value: number): string => (Number.isNaN(value) ? 'NaN' : value > 0 ? '∞' : '-∞')

/** Decimals of a finite number. JavaScript stops at 100 decimals, and at 1e21 it changes the notation. */
function plainFixed(value: number, precision: number): string {
  if (Math.abs(value) >= 1e21) return `${BigInt(value)}${precision > 0 ? `.${'0'.repeat(precision)}` : ''}`
  if (precision >= 100) return value.toFixed(100) + '0'.repeat(precision - 100)
  // Halves go to the even digit, as in Go; JavaScript's own rounding takes them up.
  const exact = value.toFixed(100)
  const cut = exact.length - 100 + precision
  const isHalf = /^50*$/.test(exact.slice(cut))
  if (!isHalf || /[13579]/.test(exact[precision === 0 ? cut - 2 : cut - 1]!)) return value.toFixed(precision)
  return exact.slice(0, precision === 0 ? cut - 1 : cut)
}

function fixedPoint(value: number, precision: number): string {
  if (!Number.isFinite(value)) return notFinite(value)
  const [whole, fraction] = plainFixed(value, precision).split('.') as [string, string?]
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',')
  return fraction === undefined ? grouped : `${grouped}.${fraction}`
}

const superscripts = '⁰¹²³⁴⁵⁶⁷⁸⁹'

function scientific(value: number, precision: number): string {
  if (!Number.isFinite(value)) return notFinite(value)
  const [mantissa, exponent] = value.toExponential(Math.min(precision, 100)).split('e') as [string, string]
  const power = String(Math.abs(Number(exponent)))
    .padStart(2, '0')
    .replace(/\d/g, (digit) => superscripts[Number(digit)]!)
  return `${mantissa}\u202f×\u202f10${Number(exponent) < 0 ? '⁻' : ''}${power}`
}

function binary(value: Value): string {
  if (typeof value === 'boolean') return value ? '1' : '0'
  if (isInt(value)) return value.toString(2)
  if (value instanceof Uint) return value.value.toString(2)
  throw formattingError(`only integers and bools can be formatted as binary, was given ${typeNameOf(value)}`)
}

function hexadecimal(value: Value): string {
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value
  if (bytes instanceof Uint8Array) return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  if (isInt(value)) return value.toString(16)
  if (value instanceof Uint) return value.value.toString(16)
  throw formattingError(`only integers, byte buffers, and strings can be formatted as hex, was given ${typeNameOf(value)}`)
}

function octal(value: Value): string {
  if (isInt(value)) return value.toString(8)
  if (value instanceof Uint) return value.value.toString(8)
  throw formattingError(`octal clause can only be used on integers, was given ${typeNameOf(value)}`)
}
