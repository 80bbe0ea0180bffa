/**
 * Resource quantities such as `100m`, `1.5Gi` and `1e3` (L1): parsing, the canonical form, exact arithmetic and comparison.
 * A quantity is units × 10^scale. Units are plain numbers while they are exact, and BigInt only beyond 2^53. An exponent is never written out
 * in digits, so what an operation costs depends on the significant digits, of which there are at most a thousand.
 * Upstream: apimachinery/pkg/api/resource quantity.go, suffix.go, math.go, amount.go (v1.36).
 */
import { bareMap } from '#base/bareMap'

/** How a quantity was written, hence how its canonical form is printed. */
export type QuantityFormat = 'DecimalSI' | 'BinarySI' | 'DecimalExponent'

export interface Quantity {
  readonly units: number | bigint
  readonly scale: number
  readonly format: QuantityFormat
}

/** What every function here takes: the wire form (a string, or a bare JSON number) or a parsed quantity. */
export type QuantityInput = string | number | Quantity

/** The text is no quantity. Messages are upstream's. */
export class QuantityError extends Error {}

const formatPattern = /^([+-]?)(\d*)(?:\.(\d*))?(?:([eE])([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/
/** The expression of the message. The look-ahead makes it fail in proportion to the text, where [0-9.]+ and [0-9]* could share digits in any way. */
const looseFormat = /^[+-]?[0-9.]+(?![0-9.])[eEinumkKMGTP]*[-+]?[0-9]*$/
const formatMessage = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

const decimalExponents: Readonly<Record<string, number>> = bareMap({ n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 })
const decimalSuffixes: Readonly<Record<number, string>> = { [-9]: 'n', [-6]: 'u', [-3]: 'm', 0: '', 3: 'k', 6: 'M', 9: 'G', 12: 'T', 15: 'P', 18: 'E' }
const binaryExponents: Readonly<Record<string, number>> = bareMap({ Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 })
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
const nanoScale = -9
const maxInt64 = 2n ** 63n - 1n
const largestExponent = 2 ** 31 - 1
/** Significant digits that are taken. Upstream has no bound except the size of the request. */
const maxDigits = 1000
/** Where the exponents of two values lie further apart, their sum is the larger value. Upstream writes the zeros between them. */
const maxShift = 1000
/** A fraction of a binary quantity is cut here, which no multiple of 2^60 makes visible at the scale of nano. */
const finestBinaryScale = -200

/** Parses the wire form. @throws QuantityError with upstream's text */
export function parseQuantity(input: QuantityInput): Quantity {
  if (typeof input === 'object') return input
  const text = typeof input === 'number' ? numberText(input) : input
  const match = formatPattern.exec(text)
  if (!match) throw new QuantityError(looseFormat.test(text) && !/\..*\./.test(text) ? "unable to parse quantity's suffix" : formatMessage)
  const [, sign = '', whole = '', fraction = '', exponentMark, exponentText, suffix = ''] = match
  if (whole === '' && fraction === '') throw new QuantityError(formatMessage)
  const binary = binaryExponents[suffix]
  const exponent = exponentMark === undefined ? (decimalExponents[suffix] ?? 0) : Number(exponentText)
  if (Math.abs(exponent) > largestExponent) throw new QuantityError("unable to parse quantity's suffix")
  const digits = whole + fraction
  const written =
    digits.length <= 15 ? { units: Number(digits), scale: -fraction.length } : significant(digits, -fraction.length, exponent, binary !== undefined)
  const units = sign === '-' ? negateUnits(written.units) : written.units
  if (binary !== undefined) return limited(multiply(units, binary <= 50 ? 2 ** binary : 2n ** BigInt(binary)), written.scale, 'BinarySI')
  return limited(units, exponent + written.scale, exponentMark === undefined ? 'DecimalSI' : 'DecimalExponent')
}

/** True when the text (or number) is a quantity. */
export function isQuantity(input: unknown): input is string | number {
  if (typeof input !== 'string' && typeof input !== 'number') return false
  try {
    parseQuantity(input)
    return true
  } catch {
    return false
  }
}

/** The canonical text: what a server stores and returns for any spelling of the value. */
export function formatQuantity(quantity: Quantity): string {
  if (isZero(quantity)) return '0'
  // A sum may be binary and have a large exponent; it keeps that.
  const binary =
    quantity.format === 'BinarySI' && quantity.scale <= maxShift && (compareQuantities(quantity, kibi) >= 0 || compareQuantities(quantity, minusKibi) <= 0)
  return binary ? formatBinary(quantity) : formatDecimal(quantity)
}

/** {@link formatQuantity} of {@link parseQuantity}. */
export function canonicalQuantity(input: QuantityInput): string {
  return formatQuantity(parseQuantity(input))
}

/** Negative, zero or positive, as sort functions return it. */
export function compareQuantities(a: QuantityInput, b: QuantityInput): number {
  const [left, right] = [parseQuantity(a), parseQuantity(b)]
  if (farApart(left, right)) return compareMagnitudes(left, right)
  const [x, y] = aligned(left, right)
  return x < y ? -1 : x > y ? 1 : 0
}

/** The sum, in the format of the first one that is not zero. */
export function addQuantities(a: QuantityInput, b: QuantityInput): Quantity {
  const left = parseQuantity(a)
  const right = parseQuantity(b)
  const format = isZero(left) ? right.format : left.format
  if (farApart(left, right)) return { ...(compareMagnitudes(absolute(left), absolute(right)) >= 0 ? left : right), format }
  const [x, y, scale] = aligned(left, right)
  const sum = typeof x === 'number' && typeof y === 'number' && Number.isSafeInteger(x + y) ? x + y : shrink(BigInt(x) + BigInt(y))
  return { ...bounded(sum, scale), format }
}

export function subtractQuantities(a: QuantityInput, b: QuantityInput): Quantity {
  return addQuantities(a, negateQuantity(b))
}

function negateQuantity(input: QuantityInput): Quantity {
  const quantity = parseQuantity(input)
  return { ...quantity, units: negateUnits(quantity.units) }
}

/** The larger one; the first when equal. */
export function maxQuantity(a: QuantityInput, b: QuantityInput): Quantity {
  return compareQuantities(a, b) >= 0 ? parseQuantity(a) : parseQuantity(b)
}

/** -1, 0 or 1. */
export function quantitySign(input: QuantityInput): number {
  const { units } = parseQuantity(input)
  return units > 0 ? 1 : units < 0 ? -1 : 0
}

/** The value, rounded away from zero to a whole number: bytes of memory, counts. Beyond 64 bits it is the largest number of 64 bits. */
export function quantityValue(input: QuantityInput): number {
  return scaledValue(parseQuantity(input), 0)
}

/** The value in thousandths, rounded away from zero: millicores. Beyond 64 bits it is the largest number of 64 bits. */
export function quantityMilliValue(input: QuantityInput): number {
  return scaledValue(parseQuantity(input), -3)
}

/** The value with its fraction, for ratios and display; not exact, and infinite beyond what a double holds. */
export function quantityAsNumber(input: QuantityInput): number {
  const quantity = parseQuantity(input)
  if (isZero(quantity)) return 0
  const { units, scale } = quantity
  return scale < 0 ? Number(units) / 10 ** -scale : Number(units) * 10 ** scale
}

/** A whole number as a quantity. */
export function quantityOf(value: number | bigint, format: QuantityFormat = 'DecimalSI'): Quantity {
  return { units: typeof value === 'bigint' ? shrink(value) : value, scale: 0, format }
}

/** Thousandths as a quantity. */
export function milliQuantity(milli: number, format: QuantityFormat = 'DecimalSI'): Quantity {
  return { units: milli, scale: -3, format }
}

/** Digits without the zeros at both ends, which would cost as if they said something; what is finer than any result is rounded up. */
function significant(digits: string, scale: number, exponent: number, binary: boolean): { units: number | bigint; scale: number } {
  let start = 0
  while (digits.charCodeAt(start) === zero) start++
  let end = digits.length
  while (end > start && digits.charCodeAt(end - 1) === zero) end--
  if (start === end) return { units: 0, scale: 0 }
  const finest = binary ? finestBinaryScale : nanoScale - exponent
  const lowest = scale + digits.length - end
  if (lowest >= finest) return { units: wholeUnits(digits.slice(start, end), binary), scale: lowest }
  const kept = end - (finest - lowest)
  return { units: kept <= start ? 1 : shrink(BigInt(wholeUnits(digits.slice(start, kept), binary)) + 1n), scale: finest }
}

/** @throws QuantityError with too many digits, unless the value is going to be the largest one allowed */
function wholeUnits(digits: string, binary: boolean): number | bigint {
  if (digits.length <= maxDigits) return shrink(BigInt(digits))
  if (binary) return BigInt(digits.slice(0, maxDigits))
  throw new QuantityError('unable to parse numeric part of quantity')
}

const zero = 48

function isZero(quantity: Quantity): boolean {
  return quantity.units === 0 || quantity.units === 0n
}

const kibi: Quantity = { units: 1024, scale: 0, format: 'BinarySI' }
const minusKibi: Quantity = { units: -1024, scale: 0, format: 'BinarySI' }

/** A JSON number's text, as upstream reads the raw bytes: Go has no trouble with 1e+21, neither has the pattern. */
function numberText(value: number): string {
  return String(value)
}

function shrink(units: bigint): number | bigint {
  const asNumber = Number(units)
  return Number.isSafeInteger(asNumber) ? asNumber : units
}

function negateUnits(units: number | bigint): number | bigint {
  return units === 0 ? 0 : -units
}

function multiply(units: number | bigint, factor: number | bigint): number | bigint {
  if (typeof units === 'number' && typeof factor === 'number' && Number.isSafeInteger(units * factor)) return units * factor
  return shrink(BigInt(units) * BigInt(factor))
}

/** Nothing finer than nano, rounded away from zero: who asks for a little should get a little. Binary values stop at the largest int64. */
function limited(units: number | bigint, scale: number, format: QuantityFormat): Quantity {
  if (format === 'BinarySI') {
    const whole = scale > 19 ? BigInt(units) * 10n ** 20n : rescale({ units, scale }, 0)
    if (whole > maxInt64) return { units: maxInt64, scale: 0, format }
    if (-whole > maxInt64) return { units: -maxInt64, scale: 0, format }
    const positiveBelowOne = units > 0 && scale < 0 && BigInt(units) < 10n ** BigInt(-scale)
    if (positiveBelowOne) return limited(units, scale, 'DecimalSI')
  }
  if (units === 0) return { units: 0, scale: 0, format }
  if (scale < nanoScale) return { units: rescale({ units, scale }, nanoScale), scale: nanoScale, format }
  return { units, scale, format }
}

/** Units at another scale, rounded away from zero where the new scale is coarser. */
function rescale(of: { units: number | bigint; scale: number }, scale: number): number | bigint {
  const shift = of.scale - scale
  if (shift === 0 || of.units === 0 || of.units === 0n) return of.units
  if (shift > 0) return shift <= 15 ? multiply(of.units, 10 ** shift) : multiply(of.units, 10n ** BigInt(shift))
  if (typeof of.units === 'number' && shift >= -15) {
    const divisor = 10 ** -shift
    const remainder = of.units % divisor
    const quotient = (of.units - remainder) / divisor
    return remainder > 0 ? quotient + 1 : remainder < 0 ? quotient - 1 : quotient
  }
  if (-shift > 2 * digitsAtMost(of.units)) return of.units > 0 ? 1 : of.units < 0 ? -1 : 0
  const divisor = 10n ** BigInt(-shift)
  const units = BigInt(of.units)
  const remainder = units % divisor
  return shrink(units / divisor + (remainder > 0n ? 1n : remainder < 0n ? -1n : 0n))
}

function aligned(a: Quantity, b: Quantity): [number | bigint, number | bigint, number] {
  // Zero has any scale.
  const scale = isZero(a) ? b.scale : isZero(b) ? a.scale : Math.min(a.scale, b.scale)
  return [rescale(a, scale), rescale(b, scale), scale]
}

function farApart(a: Quantity, b: Quantity): boolean {
  return Math.abs(a.scale - b.scale) > maxShift && !isZero(a) && !isZero(b)
}

function absolute(quantity: Quantity): Quantity {
  return quantity.units < 0 ? { ...quantity, units: negateUnits(quantity.units) } : quantity
}

/** Compares two values whose exponents lie far apart, without writing the difference out in zeros, unless their digits make up for it. */
function compareMagnitudes(a: Quantity, b: Quantity): number {
  const sign = quantitySign(a)
  if (sign !== quantitySign(b)) return Math.sign(sign - quantitySign(b))
  const [most, least] = a.scale > b.scale ? [a, b] : [b, a]
  const clearly = most.scale > least.scale + digitsAtMost(least.units)
  if (clearly) return most === a ? sign : -sign
  const [x, y] = aligned(a, b)
  return x < y ? -1 : x > y ? 1 : 0
}

/** A sum is never so long that its own text would be refused: the last digits are rounded away. */
function bounded(units: number | bigint, scale: number): { units: number | bigint; scale: number } {
  if (typeof units === 'number' || digitsAtMost(units) <= maxDigits) return { units, scale }
  const excess = String(units).length - (units < 0n ? 1 : 0) - maxDigits
  return excess <= 0 ? { units, scale } : { units: rescale({ units, scale }, scale + excess), scale: scale + excess }
}

/** No fewer than the decimal digits that the units have; at most a fifth more, where they are many. */
function digitsAtMost(units: number | bigint): number {
  return typeof units === 'number' ? 16 : Math.ceil(units.toString(16).length * 1.205)
}

const maxValue = 2 ** 63

function scaledValue(quantity: Quantity, scale: number): number {
  if (isZero(quantity)) return 0
  if (quantity.scale - scale > 19) return quantity.units > 0 ? maxValue : -maxValue
  return Math.max(-maxValue, Math.min(maxValue, Number(rescale(quantity, scale))))
}

function formatDecimal({ units, scale, format }: Quantity): string {
  const text = String(units)
  let end = text.length
  while (text.charCodeAt(end - 1) === zero) end--
  let exponent = scale + text.length - end
  const missing = ((exponent % 3) + 3) % 3
  exponent -= missing
  const suffix = format === 'DecimalExponent' ? undefined : decimalSuffixes[exponent]
  return `${text.slice(0, end)}${'0'.repeat(missing)}${suffix ?? (exponent === 0 ? '' : `e${exponent}`)}`
}

function formatBinary(quantity: Quantity): string {
  let whole = BigInt(rescale(quantity, 0))
  let thousands = 0
  while (whole % 1024n === 0n && thousands < binarySuffixes.length - 1) {
    whole /= 1024n
    thousands++
  }
  return `${whole}${binarySuffixes[thousands]}`
}
