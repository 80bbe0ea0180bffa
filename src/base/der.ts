/**
 * Reads DER (L0, pure), as strictly as Go's encoding/asn1: lengths and identifiers have one form, tags are of one byte. A value that two
 * readers could understand differently is refused. X.690.
 */

export interface DerElement {
  readonly tag: number
  readonly content: Uint8Array
  /** Tag, length and content. */
  readonly whole: Uint8Array
}

export const derTag = {
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  numericString: 0x12,
  printableString: 0x13,
  t61String: 0x14,
  ia5String: 0x16,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const

/** The elements that fill the bytes; undefined: they are no DER. */
export function derElements(bytes: Uint8Array): DerElement[] | undefined {
  const found: DerElement[] = []
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes[at] ?? 0
    const length = lengthAt(bytes, at + 1)
    if ((tag & 0x1f) === 0x1f || !length || length.end + length.value > bytes.length) return undefined
    const end = length.end + length.value
    found.push({ tag, content: bytes.subarray(length.end, end), whole: bytes.subarray(at, end) })
    at = end
  }
  return found
}

/** The elements inside the only element of the bytes, which has this tag; undefined: the bytes are something else. */
export function derInside(bytes: Uint8Array, tag: number): DerElement[] | undefined {
  const found = derElements(bytes)
  return found?.length === 1 && found[0]?.tag === tag ? derElements(found[0].content) : undefined
}

function lengthAt(bytes: Uint8Array, at: number): { readonly value: number; readonly end: number } | undefined {
  const first = bytes[at]
  if (first === undefined) return undefined
  if (first < 0x80) return { value: first, end: at + 1 }
  const size = first & 0x7f
  if (size === 0 || size > 4 || at + size >= bytes.length || bytes[at + 1] === 0) return undefined
  let value = 0
  for (let i = 1; i <= size; i++) value = value * 256 + (bytes[at + i] ?? 0)
  return value < 0x80 ? undefined : { value, end: at + 1 + size }
}

const maxArc = 2 ** 31 - 1

/** The dotted form of an object identifier; undefined: it has none, or an arc over 31 bits. */
export function derIdentifier(content: Uint8Array): string | undefined {
  const arcs: number[] = []
  let value = 0
  let isStart = true
  for (const byte of content) {
    if (isStart && byte === 0x80) return undefined
    value = value * 128 + (byte & 0x7f)
    if (value > maxArc) return undefined
    isStart = byte < 0x80
    if (!isStart) continue
    arcs.push(value)
    value = 0
  }
  const [first, ...rest] = arcs
  if (first === undefined || !isStart) return undefined
  const root = Math.min(Math.floor(first / 40), 2)
  return [root, first - 40 * root, ...rest].join('.')
}
