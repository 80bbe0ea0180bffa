/**
 * As much of HPACK (RFC 7541) as a load generator needs: requests are literals without indexing, and of an answer only :status is read.
 * That stays correct because the connection announces a dynamic table of size 0.
 */

const staticIndex = { authority: 1, path: 4, accept: 19, contentLength: 28, contentType: 31 } as const
const indexed: Readonly<Record<string, number>> = { GET: 0x82, POST: 0x83 }
const methodIndex = 2
const schemeHttps = 0x87
/** Static table entries 8–14 are :status with these values. */
const indexedStatus: Readonly<Record<number, number>> = { 8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500 }

export interface RequestHead {
  readonly method: string
  readonly path: string
  readonly authority: string
  readonly accept: string
  readonly contentType?: string | undefined
  readonly contentLength?: number | undefined
  /** More headers, lower-case. */
  readonly more?: Readonly<Record<string, string>> | undefined
}

export function encodeRequestHead(head: RequestHead): Buffer {
  const method = indexed[head.method]
  return Buffer.concat([
    method ? Buffer.from([method]) : literal(methodIndex, head.method),
    Buffer.from([schemeHttps]),
    literal(staticIndex.authority, head.authority),
    literal(staticIndex.path, head.path),
    literal(staticIndex.accept, head.accept),
    ...(head.contentType ? [literal(staticIndex.contentType, head.contentType)] : []),
    ...(head.contentLength !== undefined ? [literal(staticIndex.contentLength, String(head.contentLength))] : []),
    ...Object.entries(head.more ?? {}).map(([name, value]) => newName(name, value)),
  ])
}

/** "Literal header field without indexing, indexed name", the value as it is. */
function literal(nameIndex: number, value: string): Buffer {
  return Buffer.concat([integer(nameIndex, 4), integer(value.length, 7), Buffer.from(value, 'latin1')])
}

/** "Literal header field without indexing, new name". */
function newName(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0]), integer(name.length, 7), Buffer.from(name, 'latin1'), integer(value.length, 7), Buffer.from(value, 'latin1')])
}

/** RFC 7541 section 5.1, with zeros in the bits above the prefix. */
function integer(value: number, prefixBits: number): Buffer {
  const limit = (1 << prefixBits) - 1
  if (value < limit) return Buffer.from([value])
  const bytes = [limit]
  let rest = value - limit
  for (; rest >= 128; rest >>>= 7) bytes.push((rest & 127) | 128)
  return Buffer.from([...bytes, rest])
}

/** The :status of an answer's header block, which comes first in it; 0 when it is something else. */
export function decodeStatus(block: Buffer): number {
  let at = 0
  // Updates of the dynamic table's size (001xxxxx) may come before everything else.
  while (((block[at] ?? 0) & 0xe0) === 0x20) at += ((block[at] ?? 0) & 0x1f) === 0x1f ? 1 + continued(block, at + 1) : 1
  const first = block[at] ?? 0
  if (first & 0x80) return indexedStatus[first & 0x7f] ?? 0
  const name = first & 0x40 ? first & 0x3f : first & 0x0f
  if (!(name in indexedStatus)) return 0
  const length = (block[at + 1] ?? 0) & 0x7f
  const value = block.subarray(at + 2, at + 2 + length)
  return Number((block[at + 1] ?? 0) & 0x80 ? huffmanDigits(value) : value.toString('latin1'))
}

function continued(block: Buffer, from: number): number {
  let length = 1
  while ((block[from + length - 1] ?? 0) & 0x80) length++
  return length
}

/** Huffman codes of the digits: five bits for 0–2 (their value), six bits for 3–9 (the value + 22). */
function huffmanDigits(bytes: Buffer): string {
  let bits = ''
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0')
  let digits = ''
  for (let at = 0; digits.length < 3; ) {
    const short = Number.parseInt(bits.slice(at, at + 5), 2)
    digits += short <= 2 ? short : Number.parseInt(bits.slice(at, at + 6), 2) - 22
    at += short <= 2 ? 5 : 6
  }
  return digits
}
