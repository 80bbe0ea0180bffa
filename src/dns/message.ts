/**
 * DNS messages (L3): reads the question of a query and writes answers, with name compression, so that they fit a UDP packet. Pure.
 * Specification: RFC 1035 section 4, RFC 6891 (EDNS).
 */
export const recordTypes = { A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, TXT: 16, AAAA: 28, SRV: 33, OPT: 41 } as const
export type RecordType = Exclude<keyof typeof recordTypes, 'OPT'>

export type DnsRecord = { readonly name: string; readonly ttl: number } & (
  | { readonly type: 'A' | 'AAAA'; readonly address: string }
  | { readonly type: 'CNAME' | 'NS' | 'PTR'; readonly target: string }
  | { readonly type: 'TXT'; readonly text: string }
  | { readonly type: 'SRV'; readonly priority: number; readonly weight: number; readonly port: number; readonly target: string }
  | {
      readonly type: 'SOA'
      readonly mname: string
      readonly rname: string
      readonly serial: number
      readonly minimum: number
      /** Default: two hours, half an hour and a day. */
      readonly refresh?: number
      readonly retry?: number
      readonly expire?: number
    }
  /** A type that only other servers answer with. Its data hold no compressed name. */
  | { readonly type: 'OTHER'; readonly number: number; readonly data: Buffer }
)

export const responseCodes = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 } as const
export type ResponseCode = keyof typeof responseCodes

export interface DnsQuestion {
  readonly id: number
  readonly name: string
  /** As written in the query: clients that randomise the case expect it back. */
  readonly nameAsAsked: string
  readonly type: string
  readonly recursionDesired: boolean
  /** The largest UDP answer that the client accepts; 512 without EDNS. */
  readonly udpSize: number
  readonly hasEdns: boolean
  /** The client checks signatures itself, or wants them in the answer: no answer of another client will do. */
  readonly wantsSignatures: boolean
  /** How many questions of this server led to this one: an ExternalName asks for the addresses of its target. Default: none. */
  readonly depth?: number
}

export interface DnsAnswer {
  readonly code: ResponseCode
  readonly authoritative: boolean
  readonly answers: readonly DnsRecord[]
  readonly authority?: readonly DnsRecord[]
  readonly additional?: readonly DnsRecord[]
  /** The client asks again over TCP. */
  readonly isTruncated?: boolean
}

const headerBytes = 12
const checkingDisabled = 0x0010
const maxNameBytes = 255
const typeNames = new Map<number, string>(Object.entries(recordTypes).map(([name, number]) => [number, name]))

/** The question of a query; undefined when the bytes are no query with one question. */
export function readQuestion(bytes: Buffer): DnsQuestion | undefined {
  try {
    const flags = bytes.readUInt16BE(2)
    const [questions, answers, authorities, additionals] = [4, 6, 8, 10].map((at) => bytes.readUInt16BE(at)) as [number, number, number, number]
    if ((flags & 0x8000) !== 0 || questions !== 1) return undefined
    const name = readName(bytes, headerBytes)
    if (!name) return undefined
    const type = bytes.readUInt16BE(name.end)
    const edns = findEdns(bytes, name.end + 4, answers + authorities + additionals)
    return {
      id: bytes.readUInt16BE(0),
      name: name.text.toLowerCase(),
      nameAsAsked: name.text,
      type: typeNames.get(type) ?? `TYPE${type}`,
      recursionDesired: (flags & 0x0100) !== 0,
      udpSize: Math.min(4096, Math.max(512, edns?.size ?? 512)),
      hasEdns: edns !== undefined,
      wantsSignatures: (flags & checkingDisabled) !== 0 || edns?.dnssecOk === true,
    }
  } catch (error) {
    // A field lies behind the end of the message.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** A name in labels. Undefined when it is too long or has a pointer, which nothing before a question can be the target of. @throws RangeError */
function readName(bytes: Buffer, start: number): { readonly text: string; readonly end: number } | undefined {
  const labels: string[] = []
  let at = start
  for (let length = bytes.readUInt8(at); length > 0; length = bytes.readUInt8(at)) {
    if (length > 63 || at + length + 2 - start > maxNameBytes) return undefined
    bytes.readUInt8(at + length)
    labels.push(bytes.toString('latin1', at + 1, at + 1 + length))
    at += length + 1
  }
  return { text: labels.join('.'), end: at + 1 }
}

/** The size of UDP answers that an OPT record announces, and its flag for signatures; undefined without one. @throws RangeError when the records go beyond the message */
function findEdns(bytes: Buffer, start: number, records: number): { readonly size: number; readonly dnssecOk: boolean } | undefined {
  let at = start
  for (let i = 0; i < records; i++) {
    at = nameEnd(bytes, at)
    if (bytes.readUInt16BE(at) === recordTypes.OPT) return { size: bytes.readUInt16BE(at + 2), dnssecOk: (bytes.readUInt8(at + 6) & 0x80) !== 0 }
    at += 10 + bytes.readUInt16BE(at + 8)
  }
  return undefined
}

/** Past a name that ends with a root label or a pointer. */
export function nameEnd(bytes: Buffer, start: number): number {
  for (let at = start; ; ) {
    const length = bytes.readUInt8(at)
    if (length >= 0xc0) return at + 2
    at += length + 1
    if (length === 0) return at
  }
}

/** The answer's bytes; over `maxBytes` the answers are left out and the truncation bit asks the client to use TCP. */
export function writeAnswer(question: DnsQuestion, answer: DnsAnswer, maxBytes: number): Buffer {
  const whole = write(question, answer, answer.isTruncated === true)
  return whole.length <= maxBytes ? whole : write(question, { ...answer, answers: [], authority: [], additional: [] }, true)
}

/** A query with a question of this server's own. */
export function writeQuery(question: DnsQuestion): Buffer {
  const writer = new MessageWriter()
  for (const word of [question.id, question.recursionDesired ? 0x0100 : 0, 1, 0, 0, question.hasEdns ? 1 : 0]) writer.uint16(word)
  writer.question(question)
  return writer.finish()
}

/** For a query that could not be read: the same id, and why. */
export function writeError(bytes: Buffer, code: ResponseCode): Buffer {
  const header = Buffer.alloc(12)
  if (bytes.length >= 2) bytes.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x8000 | responseCodes[code], 2)
  return header
}

function write(question: DnsQuestion, answer: DnsAnswer, truncated: boolean): Buffer {
  const writer = new MessageWriter()
  const { answers, authority = [], additional = [] } = answer
  const flags =
    0x8000 | (answer.authoritative ? 0x0400 : 0) | (truncated ? 0x0200 : 0) | (question.recursionDesired ? 0x0100 : 0) | 0x0080 | responseCodes[answer.code]
  for (const word of [question.id, flags, 1, answers.length, authority.length, additional.length + (question.hasEdns ? 1 : 0)]) writer.uint16(word)
  writer.question({ ...question, hasEdns: false })
  for (const record of [...answers, ...authority, ...additional]) writer.record(record)
  if (question.hasEdns) writer.edns()
  return writer.finish()
}

function typeNumber(type: string): number {
  const known = recordTypes[type as RecordType]
  if (known !== undefined) return known
  const numbered = /^TYPE(\d+)$/.exec(type)
  return numbered ? Number(numbered[1]) : 255
}

class MessageWriter {
  readonly #parts: number[] = []
  readonly #offsets = new Map<string, number>()

  uint16(value: number): void {
    this.#parts.push((value >>> 8) & 0xff, value & 0xff)
  }

  uint32(value: number): void {
    this.uint16(value >>> 16)
    this.uint16(value & 0xffff)
  }

  bytes(bytes: Buffer): void {
    for (const byte of bytes) this.#parts.push(byte)
  }

  /** A name. Its suffixes that were written before become pointers. */
  name(name: string): void {
    let rest = name.replace(/\.$/, '')
    while (rest !== '') {
      const known = this.#offsets.get(rest.toLowerCase())
      if (known !== undefined) {
        this.uint16(0xc000 | known)
        return
      }
      if (this.#parts.length < 0x3fff) this.#offsets.set(rest.toLowerCase(), this.#parts.length)
      const dot = rest.indexOf('.')
      const label = Buffer.from(dot < 0 ? rest : rest.slice(0, dot), 'latin1')
      this.#parts.push(label.length)
      this.bytes(label)
      rest = dot < 0 ? '' : rest.slice(dot + 1)
    }
    this.#parts.push(0)
  }

  /** The OPT record: messages of up to 4,096 bytes are taken. */
  edns(): void {
    this.bytes(Buffer.from([0, 0, recordTypes.OPT, 0x10, 0, 0, 0, 0, 0, 0, 0]))
  }

  question({ nameAsAsked, type, hasEdns }: DnsQuestion): void {
    this.name(nameAsAsked)
    this.uint16(typeNumber(type))
    this.uint16(1)
    if (hasEdns) this.edns()
  }

  record(record: DnsRecord): void {
    this.name(record.name)
    this.uint16(record.type === 'OTHER' ? record.number : recordTypes[record.type])
    this.uint16(1)
    this.uint32(record.ttl)
    const lengthAt = this.#parts.length
    this.uint16(0)
    this.#data(record)
    const length = this.#parts.length - lengthAt - 2
    this.#parts[lengthAt] = (length >>> 8) & 0xff
    this.#parts[lengthAt + 1] = length & 0xff
  }

  #data(record: DnsRecord): void {
    switch (record.type) {
      case 'A':
        this.bytes(Buffer.from(record.address.split('.').map(Number)))
        return
      case 'AAAA':
        this.bytes(ipv6Bytes(record.address))
        return
      case 'TXT': {
        const text = Buffer.from(record.text).subarray(0, 255)
        this.#parts.push(text.length)
        this.bytes(text)
        return
      }
      case 'SRV':
        for (const word of [record.priority, record.weight, record.port]) this.uint16(word)
        this.name(record.target)
        return
      case 'SOA':
        this.name(record.mname)
        this.name(record.rname)
        for (const value of [record.serial, record.refresh ?? 7200, record.retry ?? 1800, record.expire ?? 86_400, record.minimum]) this.uint32(value)
        return
      case 'OTHER':
        this.bytes(record.data)
        return
      default:
        this.name(record.target)
    }
  }

  finish(): Buffer {
    return Buffer.from(this.#parts)
  }
}

/** Sixteen bytes of a textual IPv6 address. */
function ipv6Bytes(address: string): Buffer {
  const [head = '', tail] = address.split('::') as [string, string?]
  const words = (text: string) => (text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16)))
  const front = words(head)
  const back = tail === undefined ? [] : words(tail)
  const all = [...front, ...Array.from({ length: Math.max(0, 8 - front.length - back.length) }, () => 0), ...back]
  return Buffer.from(all.flatMap((word) => [word >>> 8, word & 0xff]))
}
