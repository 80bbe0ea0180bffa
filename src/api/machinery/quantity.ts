/**
 * Resource quantities such as `100m`, `1.5Gi` and `1e3` (L1): parsing, the canonical form, exact arithmetic and comparison.
 * A quantity is units × 10^scale. Units are plain numbers while they are exact, and BigInt only beyond 2^53.
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
const looseFormat = /^[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*$/
const formatMessage = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

const decimalExponents: Readonly<Record<string, number>> = bareMap({ n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 })
const decimalSuffixes: Readonly<Record<number, string>> = { [-9]: 'n', [-6]: 'u', [-3]: 'm', 0: '', 3: 'k', 6: 'M', 9: 'G', 12: 'T', 15: 'P', 18: 'E' }
const binaryExponents: Readonly<Record<string, number>> = bareMap({ Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 })
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
const nanoScale = -9
const maxInt64 = 2n ** 63n - 1n

/** Parses the wire form. @throws QuantityError with upstream's text */
export function parseQuantity(input: QuantityInput): Quantity {
  if (typeof input === 'object') return input
  const text = typeof input === 'number' ? numberText(input) : input
  const match = formatPattern.exec(text)
  if (!match) throw new QuantityError(looseFormat.test(text) && !/\..*\./.test(text) ? "unable to parse quantity's suffix" : formatMessage)
  const [, sign = '', whole = '', fraction = '', exponentMark, exponentText, suffix = ''] = match
  if (whole === '' && fraction === '') throw new QuantityError(formatMessage)
  const digits = whole + fraction
  const binary = binaryExponents[suffix]
  let units: number | bigint = digits.length <= 15 ? Number(digits) : shrink(BigInt(digits))
  if (sign === '-') units = negateUnits(units)
  if (binary !== undefined) return limited(multiply(units, binary <= 50 ? 2 ** binary : 2n ** BigInt(binary)), -fraction.length, 'BinarySI')
  const exponent = exponentMark === undefined ? (decimalExponents[suffix] ?? 0) : Number(exponentText)
  return limited(units, exponent - fraction.length, exponentMark === undefined ? 'DecimalSI' : 'DecimalExponent')
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
  const binary = quantity.format === 'BinarySI' && (compareQuantities(quantity, kibi) >= 0 || compareQuantities(quantity, minusKibi) <= 0)
  return binary ? formatBinary(quantity) : formatDecimal(quantity)
}

/** {@link formatQuantity} of {@link parseQuantity}. */
export function canonicalQuantity(input: QuantityInput): string {
  return formatQuantity(parseQuantity(input))
}

/** Negative, zero or positive, as a sort function wants it. */
export function compareQuantities(a: QuantityInput, b: QuantityInput): number {
  const [x, y] = aligned(parseQuantity(a), parseQuantity(b))
  return x < y ? -1 : x > y ? 1 : 0
}

/** The sum, in the format of the first one that is not zero. */
export function addQuantities(a: QuantityInput, b: QuantityInput): Quantity {
  const left = parseQuantity(a)
  const right = parseQuantity(b)
  const [x, y, scale] = aligned(left, right)
  const sum = typeof x === 'number' && typeof y === 'number' && Number.isSafeInteger(x + y) ? x + y : shrink(BigInt(x) + BigInt(y))
  return { units: sum, scale, format: isZero(left) ? right.format : left.format }
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

/** The value, rounded away from zero to a whole number: bytes of memory, counts. */
export function quantityValue(input: QuantityInput): number {
  return scaledValue(parseQuantity(input), 0)
}

/** The value in thousandths, rounded away from zero: millicores. */
export function quantityMilliValue(input: QuantityInput): number {
  return scaledValue(parseQuantity(input), -3)
}

/** The value with its fraction, for ratios and display; not exact. */
export function quantityAsNumber(input: QuantityInput): number {
  const { units, scale } = parseQuantity(input)
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
    const whole = rescale({ units, scale }, 0)
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
  if (shift === 0) return of.units
  if (shift > 0) return shift <= 15 ? multiply(of.units, 10 ** shift) : multiply(of.units, 10n ** BigInt(shift))
  if (typeof of.units === 'number' && shift >= -15) {
    const divisor = 10 ** -shift
    const remainder = of.units % divisor
    const quotient = (of.units - remainder) / divisor
    return remainder > 0 ? quotient + 1 : remainder < 0 ? quotient - 1 : quotient
  }
  const divisor = 10n ** BigInt(-shift)
  const units = BigInt(of.units)
  const remainder = units % divisor
  return shrink(units / divisor + (remainder > 0n ? 1n : remainder < 0n ? -1n : 0n))
}

function aligned(a: Quantity, b: Quantity): [number | bigint, number | bigint, number] {
  const scale = Math.min(a.scale, b.scale)
  return [rescale(a, scale), rescale(b, scale), scale]
}

function scaledValue(quantity: Quantity, scale: number): number {
  return Number(rescale(quantity, scale))
}

function formatDecimal({ units, scale, format }: Quantity): string {
  let digits = BigInt(units)
  let exponent = scale
  while (digits % 10n === 0n) {
    digits /= 10n
    exponent++
  }
  while (exponent % 3 !== 0) {
    digits *= 10n
    exponent--
  }
  const suffix = format === 'DecimalExponent' ? undefined : decimalSuffixes[exponent]
  return `${digits}${suffix ?? (exponent === 0 ? '' : `e${exponent}`)}`
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
