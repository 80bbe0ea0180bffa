/**
 * Reads PEM blocks (L1, pure) in time proportional to the text, whatever it holds. A block that is not well formed counts as text between blocks.
 * RFC 7468. Upstream: Go's encoding/pem Decode.
 */

export interface PemBlock {
  readonly type: string
  readonly hasHeaders: boolean
  readonly bytes: Uint8Array
}

const begin = '-----BEGIN '
const end = '-----END '
const dashes = '-----'

/** All blocks of a PEM text, in order. */
export function parsePem(text: string): PemBlock[] {
  const blocks: PemBlock[] = []
  for (let at = 0; ; ) {
    const endAt = lineStart(text, end, at)
    if (endAt < 0) return blocks
    // The last beginning before the end: text before it belongs to no block, and no part of the text is read twice.
    const beginAt = text.lastIndexOf(begin, endAt)
    const lineEnd = text.indexOf('\n', endAt)
    const closing = text.slice(endAt + end.length, lineEnd < 0 ? undefined : lineEnd).trimEnd()
    const isLineStart = beginAt === 0 || text[beginAt - 1] === '\n'
    const block = beginAt >= at && isLineStart && closing.endsWith(dashes) ? readBlock(text.slice(beginAt, endAt), closing.slice(0, -dashes.length)) : undefined
    if (block) blocks.push(block)
    at = endAt + end.length
  }
}

/** Where a line starts with this, from `at` on; -1: nowhere. */
function lineStart(text: string, what: string, at: number): number {
  const found = text.indexOf(`\n${what}`, Math.max(at - 1, 0))
  return found < 0 ? -1 : found + 1
}

function readBlock(text: string, type: string): PemBlock | undefined {
  const [first = '', ...lines] = text.split('\n')
  if (first.trimEnd() !== `${begin}${type}${dashes}`) return undefined
  const headers = lines.filter((line) => line.includes(':'))
  const base64 = lines
    .filter((line) => !line.includes(':'))
    .join('')
    .replace(/[\r \t]/g, '')
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) return undefined
  return { type, hasHeaders: headers.length > 0, bytes: Buffer.from(base64, 'base64') }
}
