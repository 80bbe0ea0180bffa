/**
 * Conversions between types, and the functions on strings that the language itself has (L1, pure).
 * Upstream: cel-go common/stdlib/standard.go, the ConvertToType methods of common/types (v0.26).
 */
import { bareMap } from '#base/bareMap'

import type { FunctionDeclaration } from '../declarations.ts'
import { declare, member, overload, prepared } from '../declarations.ts'
import { patternCompiler } from '../regularExpression.ts'
import { formatDouble } from '../text.ts'
import { formatDuration, formatTimestamp, parseDuration, parseTimestamp, timestamp } from '../time.ts'
import type { CelInt, Timestamp, Value } from '../values.ts'
import { Double, Duration, EvaluationError, int, maxInt, maxUint, minInt, TypeValue, typeNameOf, Uint } from '../values.ts'

/** The parsed value. @throws EvaluationError when there is none. */
function converted<T extends Value>(value: T | undefined, target: string): T {
  if (value === undefined) throw new EvaluationError(`type conversion error from 'string' to '${target}'`)
  return value
}

const same = (value: Value): Value => value

function parseInteger(text: string): CelInt | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined
  const value = BigInt(text.replace(/^\+/, ''))
  return value < minInt || value > maxInt ? undefined : int(value)
}

function parseUnsigned(text: string): Uint | undefined {
  if (!/^\d+$/.test(text)) return undefined
  const value = BigInt(text)
  return value > maxUint ? undefined : new Uint(value)
}

/** Go's ParseFloat, without its hexadecimal notation. */
function parseDouble(text: string): Double | undefined {
  const word = /^([+-]?)(inf|infinity)$/i.exec(text)
  if (word) return new Double(word[1] === '-' ? -Infinity : Infinity)
  if (/^nan$/i.test(text)) return new Double(Number.NaN)
  if (!/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text)) return undefined
  const value = Number(text)
  return Number.isFinite(value) ? new Double(value) : undefined
}

const booleans: Readonly<Record<string, boolean>> = bareMap({
  ...Object.fromEntries(['1', 't', 'T', 'true', 'TRUE', 'True'].map((word) => [word, true])),
  ...Object.fromEntries(['0', 'f', 'F', 'false', 'FALSE', 'False'].map((word) => [word, false])),
})

function truncate({ value }: Double): CelInt {
  // The bounds themselves are refused, as upstream does: a double cannot tell them from their neighbours.
  if (!(value > -(2 ** 63) && value < 2 ** 63)) throw new EvaluationError('integer overflow')
  return int(BigInt(Math.trunc(value)))
}

function truncateUnsigned({ value }: Double): Uint {
  if (!(value >= 0 && value < 2 ** 64)) throw new EvaluationError('unsigned integer overflow')
  return new Uint(BigInt(Math.trunc(value)))
}

function unsigned(value: CelInt): Uint {
  if (value < 0) throw new EvaluationError('unsigned integer overflow')
  return new Uint(BigInt(value))
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new EvaluationError('invalid UTF-8 in bytes, cannot convert to string')
  }
}

/** Any scalar as `string()` writes it. @throws EvaluationError for what has no text. */
export function toText(value: Value): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value)
  if (value instanceof Double) return formatDouble(value.value)
  if (value instanceof Uint) return String(value.value)
  if (value instanceof Uint8Array) return decodeText(value)
  if (value instanceof Duration) return formatDuration(value)
  if (value instanceof TypeValue) return value.name
  return formatTimestamp(value as Timestamp)
}

function matcher(): (text: string, pattern: string) => boolean {
  const compile = patternCompiler()
  return (text, pattern) => compile(pattern).matcher(text).find()
}

const textOverloads = ['bool', 'double', 'duration', 'int64', 'timestamp', 'uint64', 'string'].map((name) =>
  overload(`${name}_to_string`, `(${name.replace('64', '')}) -> string`, toText),
)

export const conversions: readonly FunctionDeclaration[] = [
  declare(
    'type',
    overload('type', '(A) -> type(A)', (value: Value) => new TypeValue(typeNameOf(value))),
  ),
  declare('dyn', overload('to_dyn', '(A) -> dyn', same)),
  declare(
    'bool',
    overload('bool_to_bool', '(bool) -> bool', same),
    overload('string_to_bool', '(string) -> bool', (text: string) => converted(booleans[text], 'bool')),
  ),
  declare(
    'bytes',
    overload('bytes_to_bytes', '(bytes) -> bytes', same),
    overload('string_to_bytes', '(string) -> bytes', (text: string) => new TextEncoder().encode(text)),
  ),
  declare(
    'double',
    overload('double_to_double', '(double) -> double', same),
    overload('int64_to_double', '(int) -> double', (value: CelInt) => new Double(Number(value))),
    overload('string_to_double', '(string) -> double', (text: string) => converted(parseDouble(text), 'double')),
    overload('uint64_to_double', '(uint) -> double', ({ value }: Uint) => new Double(Number(value))),
  ),
  declare(
    'duration',
    overload('duration_to_duration', '(duration) -> duration', same),
    overload('int64_to_duration', '(int) -> duration', (nanos: CelInt) => new Duration(BigInt(nanos))),
    overload('string_to_duration', '(string) -> duration', (text: string) => converted(parseDuration(text), 'google.protobuf.Duration')),
  ),
  declare(
    'int',
    overload('int64_to_int64', '(int) -> int', same),
    overload('double_to_int64', '(double) -> int', truncate),
    overload('duration_to_int64', '(duration) -> int', ({ nanos }: Duration) => int(nanos)),
    overload('string_to_int64', '(string) -> int', (text: string) => converted(parseInteger(text), 'int')),
    overload('timestamp_to_int64', '(timestamp) -> int', ({ seconds }: Timestamp) => seconds),
    overload('uint64_to_int64', '(uint) -> int', ({ value }: Uint) => int(value)),
  ),
  declare('string', ...textOverloads, overload('bytes_to_string', '(bytes) -> string', decodeText)),
  declare(
    'timestamp',
    overload('timestamp_to_timestamp', '(timestamp) -> timestamp', same),
    overload('int64_to_timestamp', '(int) -> timestamp', (seconds: CelInt) => timestamp(Number(seconds))),
    overload('string_to_timestamp', '(string) -> timestamp', (text: string) => converted(parseTimestamp(text), 'google.protobuf.Timestamp')),
  ),
  declare(
    'uint',
    overload('uint64_to_uint64', '(uint) -> uint', same),
    overload('double_to_uint64', '(double) -> uint', truncateUnsigned),
    overload('int64_to_uint64', '(int) -> uint', unsigned),
    overload('string_to_uint64', '(string) -> uint', (text: string) => converted(parseUnsigned(text), 'uint')),
  ),
  declare(
    'contains',
    member('contains_string', '(string, string) -> bool', (text: string, part: string) => text.includes(part)),
  ),
  declare(
    'endsWith',
    member('ends_with_string', '(string, string) -> bool', (text: string, part: string) => text.endsWith(part)),
  ),
  declare(
    'startsWith',
    member('starts_with_string', '(string, string) -> bool', (text: string, part: string) => text.startsWith(part)),
  ),
  declare(
    'matches',
    prepared(overload, 'matches', '(string, string) -> bool', matcher),
    prepared(member, 'matches_string', '(string, string) -> bool', matcher),
  ),
]
