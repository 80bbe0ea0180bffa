/** Protocol buffers' wire format (L1): numbers, strings and bytes, each behind its field's tag. Upstream: protobuf.dev/programming-guides/encoding. */

export const wireVarint = 0
export const wireFixed64 = 1
export const wireLengthDelimited = 2
const wireFixed32 = 5

const two32 = 2 ** 32

/** Appends to a buffer that grows. */
export class ProtoWriter {
  #bytes = Buffer.allocUnsafe(128)
  #length = 0

  #room(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + bytes))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }

  tag(id: number, wireType: number): void {
    this.varint(id * 8 + wireType)
  }

  /** A whole number; a negative one as the 64 bits of its two's complement. */
  varint(value: number): void {
    this.#room(10)
    if (value < 0 || value > Number.MAX_SAFE_INTEGER) {
      this.varint64(BigInt(value))
      return
    }
    let rest = value
    for (; rest > 0x7f; rest = Math.floor(rest / 128)) this.#bytes[this.#length++] = (rest % 128) | 0x80
    this.#bytes[this.#length++] = rest
  }

  /** As {@link varint}, exact for all 64 bits. */
  varint64(value: bigint): void {
    this.#room(10)
    let rest = BigInt.asUintN(64, value)
    for (; rest > 0x7fn; rest >>= 7n) this.#bytes[this.#length++] = Number(rest & 0x7fn) | 0x80
    this.#bytes[this.#length++] = Number(rest)
  }

  /** Eight bytes, the lowest first. */
  fixed64(value: bigint): void {
    this.#room(8)
    this.#length = this.#bytes.writeBigUInt64LE(BigInt.asUintN(64, value), this.#length)
  }

  /** UTF-8, its length before it. */
  string(text: string): void {
    const length = Buffer.byteLength(text)
    this.varint(length)
    this.#room(length)
    this.#length += this.#bytes.write(text, this.#length, length, 'utf8')
  }

  /** Their number before them. */
  bytes(bytes: Uint8Array): void {
    this.varint(bytes.length)
    this.#room(bytes.length)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
  }

  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }
}

/** What a message may cost to read, with all messages within. */
export class ReadLimits {
  #fields: number
  #levels: number

  /** @param fields with their repetitions @param levels of messages within messages */
  constructor(fields: number, levels: number) {
    this.#fields = fields
    this.#levels = levels
  }

  /** @throws ReadLimitError */
  takeField(): void {
    if (--this.#fields < 0) throw new ReadLimitError('it has too many fields')
  }

  /** @throws ReadLimitError */
  enter(): void {
    if (--this.#levels < 0) throw new ReadLimitError('its messages are nested too deep')
  }

  leave(): void {
    this.#levels++
  }
}

export class ReadLimitError extends Error {}

/** Reads what {@link ProtoWriter} and its like have written. @throws Error where the bytes end too early. */
export class ProtoReader {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number
  /** The two halves of the last varint, unsigned. */
  #low = 0
  #high = 0

  /** Absent: the message may have as many fields as fit into its bytes. */
  readonly limits: ReadLimits | undefined

  constructor(bytes: Uint8Array, limits?: ReadLimits) {
    this.limits = limits
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#at = 0
    this.#end = bytes.byteLength
  }

  get hasMore(): boolean {
    return this.#at < this.#end
  }

  #varint(): void {
    const first = this.#bytes[this.#at]
    if (this.#at < this.#end && first !== undefined && first < 0x80) {
      this.#at++
      this.#low = first
      this.#high = 0
      return
    }
    let low = 0
    let high = 0
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.#at >= this.#end) throw new Error('the message ends within a number')
      const byte = this.#bytes[this.#at++] as number
      const bits = byte & 0x7f
      if (shift < 28) low += bits * 2 ** shift
      else if (shift === 28) {
        low += (bits & 0x0f) * 2 ** 28
        high = bits >> 4
      } else high += bits * 2 ** (shift - 32)
      if (byte < 0x80) {
        this.#low = low
        this.#high = high % two32
        return
      }
    }
    throw new Error('a number has more than ten bytes')
  }

  uint32(): number {
    this.#varint()
    return this.#low >>> 0
  }

  int32(): number {
    this.#varint()
    return this.#low | 0
  }

  /** Exact up to 2^53. */
  uint64(): number {
    this.#varint()
    return this.#high * two32 + this.#low
  }

  /** Exact from -2^53 to 2^53. */
  int64(): number {
    this.#varint()
    return (this.#high | 0) * two32 + this.#low
  }

  /** Decimal digits, exact for all 64 bits. */
  uint64Text(): string {
    this.#varint()
    return this.#high === 0 ? String(this.#low) : this.#bits().toString()
  }

  /** As {@link uint64Text}, with a sign. */
  int64Text(): string {
    this.#varint()
    return this.#high === 0 ? String(this.#low) : BigInt.asIntN(64, this.#bits()).toString()
  }

  #bits(): bigint {
    return (BigInt(this.#high) << 32n) | BigInt(this.#low)
  }

  bool(): boolean {
    this.#varint()
    return this.#low !== 0 || this.#high !== 0
  }

  /** What a length stands before. The bytes are not copied. */
  bytes(): Buffer {
    const length = this.uint32()
    const from = this.#at
    this.#skipBytes(length)
    return this.#bytes.subarray(from, this.#at)
  }

  /** As {@link bytes}, but no Buffer. */
  view(): Uint8Array {
    const length = this.uint32()
    const from = this.#at
    this.#skipBytes(length)
    return new Uint8Array(this.#bytes.buffer, this.#bytes.byteOffset + from, length)
  }

  /** A string with one character for each byte. */
  latin1(): string {
    const length = this.uint32()
    const from = this.#at
    this.#skipBytes(length)
    return this.#bytes.toString('latin1', from, this.#at)
  }

  #skipBytes(length: number): void {
    const end = this.#at + length
    if (end > this.#end) throw new Error(`the message ends ${end - this.#end} bytes too early`)
    this.#at = end
  }

  string(): string {
    return this.bytes().toString('utf8')
  }

  /** Skips an unknown field. */
  fixed64Text(): string {
    const at = this.#at
    this.#skipBytes(8)
    return String(this.#bytes.readBigUInt64LE(at))
  }

  skip(wireType: number): void {
    if (wireType === wireVarint) this.#varint()
    else if (wireType === wireLengthDelimited) this.bytes()
    else if (wireType === wireFixed64 || wireType === wireFixed32) this.#skipBytes(wireType === wireFixed64 ? 8 : 4)
    else throw new Error(`unknown wire type ${wireType}`)
  }
}
