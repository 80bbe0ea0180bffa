/**
 * Writes header blocks (L3) as literals without indexing, so that one encoder serves all connections, whatever their table size. A block is a string
 * with one character per byte: cached strings are joined, and written once. Upstream: RFC 7541.
 */
import { staticIndexes, staticTable } from './staticTable.ts'

/** The encoded name of a header and its last value: most headers always have the same value. */
interface Known {
  readonly start: string
  value: string
  field: string
}

const mostKnown = 256
/** Longest value that is cached. */
const mostKept = 256
const soundName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
const unsoundValue = /[^\t\x20-\x7e\x80-\xff]/
/** Connection headers of HTTP/1.1, which are forbidden in HTTP/2. */
const ofConnection: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'])

export class HpackEncoder {
  readonly #known = new Map<string, Known>()
  readonly #statuses = new Map<number, string>()

  status(status: number): string {
    let field = this.#statuses.get(status)
    if (field === undefined) {
      field = statusField(status)
      this.#statuses.set(status, field)
    }
    return field
  }

  /** @throws TypeError for a name or value that is invalid in HTTP/2 */
  field(name: string, value: string): string {
    let known = this.#known.get(name)
    if (known === undefined) {
      known = { start: fieldStart(name), value: '', field: '' }
      if (this.#known.size < mostKnown) this.#known.set(name, known)
    } else if (known.value === value && known.field !== '') return known.field
    if (unsoundValue.test(value)) throw new TypeError(`the value of the header ${name} has characters that no header may have`)
    const field = known.start + integer(value.length, 0x7f, 0) + value
    if (value.length <= mostKept) {
      known.value = value
      known.field = field
    }
    return field
  }
}

function statusField(status: number): string {
  const text = String(status)
  const index = staticTable.findIndex(({ name, value }) => name === ':status' && value === text) + 1
  return index > 0 ? String.fromCharCode(0x80 | index) : `${integer(staticIndexes.get(':status') ?? 0, 0x0f, 0)}${integer(text.length, 0x7f, 0)}${text}`
}

/** "Literal without indexing", and the name. */
function fieldStart(name: string): string {
  if (!soundName.test(name) || ofConnection.has(name)) throw new TypeError(`${JSON.stringify(name)} is no header of HTTP/2`)
  const index = staticIndexes.get(name)
  return index !== undefined ? integer(index, 0x0f, 0) : `\0${integer(name.length, 0x7f, 0)}${name}`
}

/** Encodes an integer that starts with the bits of the mask, as text. */
function integer(value: number, mask: number, start: number): string {
  if (value < mask) return String.fromCharCode(start | value)
  let text = String.fromCharCode(start | mask)
  let rest = value - mask
  for (; rest >= 128; rest >>>= 7) text += String.fromCharCode((rest & 0x7f) | 0x80)
  return text + String.fromCharCode(rest)
}
