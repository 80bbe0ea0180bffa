/**
 * Reads the answer of another name server into records (L3), so that it can be kept, renamed or joined to others. Pure.
 * Specification: RFC 1035 section 4.
 */
import { type DnsAnswer, type DnsRecord, nameEnd, type ResponseCode, recordTypes, responseCodes } from './message.ts'

const headerBytes = 12
const maxPointers = 32
const authoritativeAnswer = 0x0400
const truncation = 0x0200
const codes = new Map<number, ResponseCode>(Object.entries(responseCodes).map(([name, number]) => [number, name as ResponseCode]))
/** Types of RFC 1035, and SRV, whose data may hold a compressed name behind so many bytes. */
const namesWithin: ReadonlyMap<number, number> = new Map([
  [recordTypes.NS, 0],
  [recordTypes.CNAME, 0],
  [recordTypes.PTR, 0],
  [15, 2], // MX
  [39, 0], // DNAME
  [recordTypes.SRV, 6],
])

/** Undefined: the message is damaged or truncated, or has a response code beyond those of RFC 1035. */
export function readAnswer(bytes: Buffer): DnsAnswer | undefined {
  try {
    const flags = bytes.readUInt16BE(2)
    const code = codes.get(flags & 0xf)
    if ((flags & truncation) !== 0 || code === undefined) return undefined
    let at = headerBytes
    for (let questions = bytes.readUInt16BE(4); questions > 0; questions--) at = nameEnd(bytes, at) + 4
    const section = (count: number) => {
      const read = readRecords(bytes, at, count)
      at = read.end
      return read.records
    }
    const [answers, authority, additional] = [section(bytes.readUInt16BE(6)), section(bytes.readUInt16BE(8)), section(bytes.readUInt16BE(10))]
    return { code, authoritative: (flags & authoritativeAnswer) !== 0, answers, authority, additional }
  } catch (error) {
    // A field lies behind the end of the message.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function readRecords(bytes: Buffer, start: number, count: number): { readonly records: DnsRecord[]; readonly end: number } {
  const records: DnsRecord[] = []
  let at = start
  for (let i = 0; i < count; i++) {
    const fixed = nameEnd(bytes, at)
    const type = bytes.readUInt16BE(fixed)
    const length = bytes.readUInt16BE(fixed + 8)
    const data = fixed + 10
    if (data + length > bytes.length) throw new RangeError('a record ends behind the message')
    // The OPT record is about this hop alone.
    if (type !== recordTypes.OPT)
      records.push({ name: nameAt(bytes, at), ttl: bytes.readUInt32BE(fixed + 4), ...dataOf(bytes, type, data, length) } as DnsRecord)
    at = data + length
  }
  return { records, end: at }
}

type Data<T> = T extends unknown ? Omit<T, 'name' | 'ttl'> : never

function dataOf(bytes: Buffer, type: number, at: number, length: number): Data<DnsRecord> {
  const target = () => nameAt(bytes, at)
  switch (type) {
    case recordTypes.CNAME:
      return { type: 'CNAME', target: target() }
    case recordTypes.NS:
      return { type: 'NS', target: target() }
    case recordTypes.PTR:
      return { type: 'PTR', target: target() }
    case recordTypes.SRV:
      return {
        type: 'SRV',
        priority: bytes.readUInt16BE(at),
        weight: bytes.readUInt16BE(at + 2),
        port: bytes.readUInt16BE(at + 4),
        target: nameAt(bytes, at + 6),
      }
    case recordTypes.SOA: {
      const responsible = nameEnd(bytes, at)
      const numbers = nameEnd(bytes, responsible)
      const [serial, refresh, retry, expire, minimum] = [0, 4, 8, 12, 16].map((offset) => bytes.readUInt32BE(numbers + offset)) as [
        number,
        number,
        number,
        number,
        number,
      ]
      return { type: 'SOA', mname: target(), rname: nameAt(bytes, responsible), serial, refresh, retry, expire, minimum }
    }
    default:
      return { type: 'OTHER', number: type, data: plainData(bytes, type, at, length) }
  }
}

/** The data without pointers, which would lead elsewhere in another message. */
function plainData(bytes: Buffer, type: number, at: number, length: number): Buffer {
  const before = namesWithin.get(type)
  if (before === undefined) return Buffer.from(bytes.subarray(at, at + length))
  const labels = nameAt(bytes, at + before)
    .split('.')
    .filter((label) => label !== '')
  const name = labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')])
  return Buffer.concat([bytes.subarray(at, at + before), ...name, Buffer.from([0])])
}

/** A name with its pointers followed. @throws RangeError for one that is too long or leads in a circle */
function nameAt(bytes: Buffer, start: number): string {
  const labels: string[] = []
  let pointers = 0
  let size = 0
  for (let at = start; ; ) {
    const length = bytes.readUInt8(at)
    if (length === 0) return labels.join('.')
    if (length >= 0xc0) {
      if (++pointers > maxPointers) throw new RangeError('too many pointers')
      at = bytes.readUInt16BE(at) & 0x3fff
      continue
    }
    size += length + 1
    if (length > 63 || size > 254) throw new RangeError('a name is too long')
    bytes.readUInt8(at + length)
    labels.push(bytes.toString('latin1', at + 1, at + 1 + length))
    at += length + 1
  }
}
