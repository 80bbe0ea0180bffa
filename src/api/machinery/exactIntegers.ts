/**
 * Integers beyond those that doubles hold exactly (L1, pure): where a document has them, which bigint one of its numbers is, and JSON text with bigints. Only
 * documents with a run of 16 digits pay for it. Every other number is a double: larger ones too, as in upstream.
 * Upstream: sigs.k8s.io/json (UnmarshalCaseSensitivePreserveInts), encoding/json (v1.36).
 */

/** The shortest integer that is not safe has as many digits. */
export const longDigits = 16
const [zero, nine] = [0x30, 0x39]
/** What stands before a number outside of texts: white space, `,`, `-`, `:` and `[`. */
const beforeNumbers: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d, 0x20, 0x2c, 0x2d, 0x3a, 0x5b])

/** Whether a document may have an integer of 16 digits or more. Looks at each sixteenth character: no such run is between two of them. */
export function hasLongInteger(document: Uint8Array | string): boolean {
  const at = typeof document === 'string' ? (index: number) => document.charCodeAt(index) : (index: number) => document[index] as number
  for (let index = longDigits - 1; index < document.length; index += longDigits) {
    if (!isDigit(at(index))) continue
    let first = index
    while (first > 0 && isDigit(at(first - 1))) first--
    let last = index
    while (last + 1 < document.length && isDigit(at(last + 1))) last++
    if (last - first + 1 >= longDigits && (first === 0 || beforeNumbers.has(at(first - 1)))) return true
    // The next look is at the first place behind the run, at the earliest.
    index += longDigits * Math.floor((last - index) / longDigits)
  }
  return false
}

function isDigit(code: number): boolean {
  return code >= zero && code <= nine
}

const int64 = { least: -(2n ** 63n), greatest: 2n ** 63n - 1n }
/** Integers with fewer characters are int64s, those with more are none. */
const int64Digits = 19

/** The bigint when it is an int64 that no double holds exactly; undefined when its value is a double. */
export function asLongInteger(value: bigint): bigint | undefined {
  if (value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER) return undefined
  return value >= int64.least && value <= int64.greatest ? value : undefined
}

/**
 * What a number of a document is, when the document was parsed with doubles.
 * @param literal the number without a fraction or an exponent when `isInteger`
 * @param parsed the parsed value of its place. Of duplicate fields the last counts: it stays when it is another number.
 */
export function exactNumber(literal: string, isInteger: boolean, parsed: unknown): unknown {
  if (typeof parsed !== 'number' && typeof parsed !== 'bigint') return parsed
  // BigInt() reads digits faster than Number() does.
  const exact = isInteger && literal.length <= int64Digits + 1 ? BigInt(literal) : undefined
  const double = Number(exact ?? literal)
  if ((typeof parsed === 'number' ? parsed : Number(parsed)) !== double) return parsed
  if (exact === undefined || Number.isSafeInteger(double)) return double
  return literal.length < int64Digits ? exact : (asLongInteger(exact) ?? double)
}

/** JSON.stringify for values that may hold bigints. */
export function stringifyExactly(value: unknown, indent = 0): string {
  try {
    return JSON.stringify(value, undefined, indent)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    const holders = new Set<unknown>()
    findHolders(value, holders)
    return textOf(value, { indent, holders }, '\n') as string
  }
}

/** Adds the objects and lists with a bigint, at any depth. @returns whether there is one */
function findHolders(value: unknown, holders: Set<unknown>): boolean {
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint'
  let isHolder = false
  for (const member of Array.isArray(value) ? value : Object.values(value)) isHolder = findHolders(member, holders) || isHolder
  if (isHolder) holders.add(value)
  return isHolder
}

interface Form {
  readonly indent: number
  /** Objects and lists that JSON.stringify refuses. */
  readonly holders: ReadonlySet<unknown>
}

/** @param line a line break and the indentation of the value. @returns undefined for what JSON leaves out */
function textOf(value: unknown, form: Form, line: string): string | undefined {
  const { indent, holders } = form
  if (typeof value === 'bigint') return String(value)
  if (!holders.has(value)) {
    const text = JSON.stringify(value, undefined, indent)
    return indent === 0 ? text : text?.replaceAll('\n', line)
  }
  const below = indent === 0 ? '' : line + ' '.repeat(indent)
  const end = indent === 0 ? '' : line
  if (Array.isArray(value)) return `[${value.map((item) => below + (textOf(item, form, below) ?? 'null')).join()}${end}]`
  const members: string[] = []
  for (const [name, member] of Object.entries(value as object)) {
    const text = textOf(member, form, below)
    if (text !== undefined) members.push(`${below}${JSON.stringify(name)}:${indent === 0 ? '' : ' '}${text}`)
  }
  return `{${members.join()}${end}}`
}
