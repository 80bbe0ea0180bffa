/**
 * A quantity as Go's ParseQuantity keeps it in memory (L1): hashes of templates cover these private members.
 * Upstream: apimachinery/pkg/api/resource/{quantity,suffix,amount}.go, gopkg.in/inf.v0, math/big (v1.36).
 */
type Format = 'DecimalSI' | 'BinarySI' | 'DecimalExponent'

interface Suffix {
  readonly base: 2 | 10
  readonly exponent: number
  readonly format: Format
}

interface Parsed extends Suffix {
  readonly isNegative: boolean
  /** Digits before the point, without leading zeros, and after it. */
  readonly whole: string
  readonly fraction: string
}

const decimalSuffixes = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']
const binarySuffixes = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
const maxInt64 = 2n ** 63n - 1n
const smallestScale = -9
/** Digits that surely fit in 64 bits. */
const maxDigits = 18

/** The members of a Quantity as spew dumps them. `text` is a valid quantity. */
export function goQuantityDump(text: string): string {
  // Go keeps a plain zero as it was written.
  if (text === '0') return smallDump(0n, 0, text, 'DecimalSI')
  const parsed = parse(text)
  return (parsed && (smallAmount(parsed, text) ?? largeAmount(parsed))) ?? smallDump(0n, 0, '', 'DecimalSI')
}

function parse(text: string): Parsed | undefined {
  const [, sign = '', whole = '', fraction = '', suffix = ''] = /^([+-]?)0*(\d*)(?:\.(\d*))?([A-Za-z]*[+-]?\d*)$/.exec(text) ?? []
  const known = suffixOf(suffix)
  return known && { ...known, isNegative: sign === '-', whole: whole || '0', fraction }
}

function suffixOf(suffix: string): Suffix | undefined {
  const decimal = decimalSuffixes.indexOf(suffix)
  if (decimal >= 0) return { base: 10, exponent: decimal * 3 - 9, format: 'DecimalSI' }
  const binary = binarySuffixes.indexOf(suffix)
  if (binary >= 0) return { base: 2, exponent: (binary + 1) * 10, format: 'BinarySI' }
  const [, exponent] = /^[eE]([+-]?\d+)$/.exec(suffix) ?? []
  return exponent === undefined ? undefined : { base: 10, exponent: Number(exponent), format: 'DecimalExponent' }
}

/** An amount that Go keeps in 64 bits; undefined when it takes a big number. */
function smallAmount({ base, exponent, format, isNegative, whole, fraction }: Parsed, text: string): string | undefined {
  const isBinary = base === 2
  if (isBinary && fraction !== '') return undefined
  const precision = isBinary ? 14 - whole.length - (exponent * 3) / 10 : maxDigits - whole.length - fraction.length
  const scale = isBinary ? 0 : exponent - fraction.length
  if (precision < 0 || scale < smallestScale) return undefined
  const digits = whole + fraction
  const value = BigInt(digits)
  const amount = value * (isBinary ? 2n ** BigInt(exponent) : 1n)
  if (amount > maxInt64) return undefined
  // Go keeps the text too, if it is canonical for certain.
  const keepsText = isBinary ? (value & 7n) !== 0n : scale % 3 === 0 && !digits.endsWith('000') && digits[0] !== '0'
  return smallDump(isNegative ? -amount : amount, scale, keepsText ? text : '', format)
}

function largeAmount({ base, exponent, format, isNegative, whole, fraction }: Parsed): string {
  const digits = BigInt(whole + fraction)
  let unscaled = base === 2 ? digits * 2n ** BigInt(exponent) : digits
  let scale = base === 2 ? fraction.length : fraction.length - exponent
  if (unscaled !== 0n) {
    unscaled = roundUp(unscaled, scale)
    scale = -smallestScale
  }
  const one = 10n ** BigInt(Math.max(scale, 0))
  if (base === 2 && unscaled > maxInt64 * one) return largeDump(maxInt64, 0, isNegative, format)
  return largeDump(unscaled, scale, isNegative, base === 2 && unscaled > 0n && unscaled < one ? 'DecimalSI' : format)
}

/** In billionths. */
function roundUp(unscaled: bigint, scale: number): bigint {
  const places = -smallestScale - scale
  if (places >= 0) return unscaled * 10n ** BigInt(places)
  const divisor = 10n ** BigInt(-places)
  return (unscaled + divisor - 1n) / divisor
}

function smallDump(value: bigint, scale: number, text: string, format: Format): string {
  return dump(value, scale, '<nil>', text, format)
}

function largeDump(unscaled: bigint, scale: number, isNegative: boolean, format: Format): string {
  const words: bigint[] = []
  for (let rest = unscaled; rest > 0n; rest >>= 64n) words.push(rest & 0xffffffffffffffffn)
  const number = `{unscaled:(big.Int){neg:(bool)${isNegative && unscaled > 0n} abs:(big.nat)[${words.join(' ')}]} scale:(inf.Scale)${scale}}`
  return dump(0n, 0, number, '', format)
}

function dump(value: bigint, scale: number, decimal: string, text: string, format: Format): string {
  const small = `i:(resource.int64Amount){value:(int64)${value} scale:(resource.Scale)${scale}}`
  return `{${small} d:(resource.infDecAmount){Dec:(*inf.Dec)${decimal}} s:(string)${text} Format:(resource.Format)${format}}`
}
