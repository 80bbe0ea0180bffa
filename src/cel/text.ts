/**
 * Strings as CEL sees them (L1, pure): lengths in code points, doubles as Go prints them, values in messages.
 */
import { formatDuration, formatTimestamp } from './time.ts'
import type { Value } from './values.ts'
import { Double, Duration, ListValue, MapValue, Timestamp, TypeValue, Uint } from './values.ts'

/** The number of code points. */
export function codePointCount(text: string): number {
  let count = text.length
  for (let i = 0; i < text.length - 1; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      count -= 1
      i += 1
    }
  }
  return count
}

/** Go's %g: the shortest digits that read back the same, with an exponent below -4 and from 6 on. */
export function formatDouble(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  if (value === 0) return Object.is(value, -0) ? '-0' : '0'
  const [mantissa, power] = value.toExponential().split('e') as [string, string]
  const exponent = Number(power)
  if (exponent >= -4 && exponent < 6) return plainDigits(mantissa, exponent)
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
}

/** Moves the point of a mantissa such as `-1.25` by an exponent. */
function plainDigits(mantissa: string, exponent: number): string {
  const sign = mantissa.startsWith('-') ? '-' : ''
  const digits = mantissa.replace(/[-.]/g, '')
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0')
  const fraction = digits.slice(exponent + 1)
  return sign + whole + (fraction === '' ? '' : `.${fraction}`)
}

/** A value inside a message. */
export function describe(value: Value): string {
  if (value instanceof Double) return formatDouble(value.value)
  if (value instanceof Uint) return String(value.value)
  if (value instanceof Timestamp) return formatTimestamp(value)
  if (value instanceof Duration) return formatDuration(value)
  if (value instanceof TypeValue) return value.name
  if (value instanceof ListValue) return '[list]'
  if (value instanceof MapValue) return '[map]'
  return typeof value === 'object' && value !== null ? '[value]' : String(value)
}
