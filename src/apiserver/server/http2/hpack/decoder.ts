/**
 * Reads header blocks (L3). One per connection: blocks refer to fields that earlier blocks added to the dynamic table. The decoder does not decide
 * which fields a request may have: malformed ones are passed on, marked. Pure. Upstream: RFC 7541.
 */
import { ConnectionError, errorCode } from '../errors.ts'
import { DynamicTable } from './dynamicTable.ts'
import { HuffmanDecoder } from './huffman.ts'
import { type Field, staticTable } from './staticTable.ts'

export interface FieldSink {
  /** @param isSound whether name and value have only valid characters */
  field(name: string, value: string, isSound: boolean): void
}

/** The table size that this side allows: the default of the RFC. */
const mostTableBytes = 4096
/** Larger integers cannot occur in a block within the size limit. */
const largestInteger = 0x0fff_ffff

const soundName = /^:?[!#$%&'*+\-.^_`|~0-9a-z]+$/
/** No controls but tabs, no white space at the ends. */
const soundValue = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/

export class HpackDecoder {
  readonly #dynamic = new DynamicTable(mostTableBytes)
  readonly #huffman = new HuffmanDecoder()
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0
  #end = 0

  /** @throws ConnectionError COMPRESSION_ERROR: the tables of both sides differ from here on */
  decode(bytes: Buffer, start: number, end: number, sink: FieldSink): void {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
    this.#readTableSizes()
    while (this.#at < end) {
      const first = bytes[this.#at]!
      if (first & 0x80) {
        const { name, value, isSound } = this.#known(this.#integer(0x7f))
        sink.field(name, value, isSound)
      } else if (first & 0x40) {
        const field = this.#literal(0x3f)
        this.#dynamic.add(field)
        sink.field(field.name, field.value, field.isSound)
      } else if (first & 0x20) {
        throw new ConnectionError(errorCode.compressionError, 'a table size after a field')
      } else {
        const field = this.#literal(0x0f)
        sink.field(field.name, field.value, field.isSound)
      }
    }
  }

  /** Only a block's beginning may change the size. */
  #readTableSizes(): void {
    while (this.#at < this.#end && (this.#bytes[this.#at]! & 0xe0) === 0x20) {
      const size = this.#integer(0x1f)
      if (size > mostTableBytes) throw new ConnectionError(errorCode.compressionError, 'a table larger than granted')
      this.#dynamic.resize(size)
    }
  }

  #known(index: number): Field {
    const field = index <= staticTable.length ? staticTable[index - 1] : this.#dynamic.get(index - staticTable.length - 1)
    if (!field) throw new ConnectionError(errorCode.compressionError, `no field has the index ${index}`)
    return field
  }

  #literal(mask: number): Field {
    const index = this.#integer(mask)
    if (index > 0) {
      const { name, isSound } = this.#known(index)
      const value = this.#string()
      // An invalid field in the dynamic table may have an invalid value only: then its name is checked again.
      return { name, value, isSound: (isSound || soundName.test(name)) && soundValue.test(value) }
    }
    const name = this.#string()
    const value = this.#string()
    return { name, value, isSound: soundName.test(name) && soundValue.test(value) }
  }

  /** Decodes an integer that starts with the bits of the mask. */
  #integer(mask: number): number {
    const first = this.#bytes[this.#at++]! & mask
    if (first < mask) return first
    let value = mask
    for (let shift = 0; shift <= 21; shift += 7) {
      if (this.#at >= this.#end) break
      const byte = this.#bytes[this.#at++]!
      value += (byte & 0x7f) << shift
      if (value > largestInteger) break
      if (byte < 0x80) return value
    }
    throw new ConnectionError(errorCode.compressionError, 'an integer without end')
  }

  #string(): string {
    if (this.#at >= this.#end) throw new ConnectionError(errorCode.compressionError, 'a block that ends within a field')
    const isHuffman = this.#bytes[this.#at]! >= 0x80
    const length = this.#integer(0x7f)
    const start = this.#at
    this.#at += length
    if (this.#at > this.#end) throw new ConnectionError(errorCode.compressionError, 'a text that is longer than its block')
    return isHuffman ? this.#huffman.decode(this.#bytes, start, this.#at) : this.#bytes.toString('latin1', start, this.#at)
  }
}
