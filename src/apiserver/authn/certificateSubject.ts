/**
 * Reads one attribute of a certificate's subject by its object identifier (L3): Node names only those that OpenSSL knows.
 * DER as far as a subject needs it: sequences, sets, identifiers and strings. Upstream: crypto/x509/pkix Name.Names.
 */

interface Element {
  readonly tag: number
  readonly content: Buffer
  /** Where the next element begins. */
  readonly end: number
}

const version = 0xa0
const objectIdentifier = 0x06
const bmpString = 0x1e
/** The subject stands sixth in a TBSCertificate with a version: version, serial number, signature, issuer, validity, subject. */
const subjectIndex = 5

/** The values of the attribute in the subject of a DER certificate, in order. */
export function subjectValues(der: Uint8Array, identifier: string): string[] {
  const certificate = read(Buffer.from(der.buffer, der.byteOffset, der.byteLength), 0)
  const [toBeSigned] = elements(certificate.content)
  if (!toBeSigned) return []
  const parts = elements(toBeSigned.content)
  const subject = parts[parts[0]?.tag === version ? subjectIndex : subjectIndex - 1]
  if (!subject) return []
  const wanted = encodeIdentifier(identifier)
  return elements(subject.content)
    .flatMap((set) => elements(set.content))
    .flatMap((pair) => {
      const [type, value] = elements(pair.content)
      return type?.tag === objectIdentifier && value && type.content.equals(wanted) ? [textOf(value)] : []
    })
}

function textOf({ tag, content }: Element): string {
  return tag === bmpString ? Buffer.from(content).swap16().toString('utf16le') : content.toString('utf8')
}

function elements(content: Buffer): Element[] {
  const all: Element[] = []
  for (let at = 0; at < content.length; ) {
    const one = read(content, at)
    all.push(one)
    at = one.end
  }
  return all
}

function read(buffer: Buffer, at: number): Element {
  const tag = buffer[at] ?? 0
  const first = buffer[at + 1] ?? 0
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f
  const length = lengthBytes === 0 ? first : buffer.readUIntBE(at + 2, lengthBytes)
  const start = at + 2 + lengthBytes
  return { tag, content: buffer.subarray(start, start + length), end: start + length }
}

function encodeIdentifier(identifier: string): Buffer {
  const [first = 0, second = 0, ...rest] = identifier.split('.').map(Number)
  const bytes = [first * 40 + second]
  for (const arc of rest) {
    const digits = [arc % 128]
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) digits.unshift((left % 128) | 0x80)
    bytes.push(...digits)
  }
  return Buffer.from(bytes)
}
