/**
 * Reads PEM blocks and PKCS#10 certificate requests (L1, pure): enough of DER to find the parts that are signed, by whom and how. Whether the
 * signature is right is for the API server to say, which has cryptography at hand. RFC 2986, RFC 7468.
 */

export interface PemBlock {
  readonly type: string
  readonly hasHeaders: boolean
  readonly bytes: Uint8Array
}

export interface SubjectAttribute {
  /** Dotted object identifier: `2.5.4.10` is an organization. */
  readonly type: string
  readonly value: string
}

export interface CertificateRequest {
  /** In order. */
  readonly subject: readonly SubjectAttribute[]
  /** DER of what is signed. */
  readonly signed: Uint8Array
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKeyInfo: Uint8Array
  /** Dotted object identifier of the signature's algorithm. */
  readonly algorithm: string
  readonly signature: Uint8Array
}

export const requestBlockType = 'CERTIFICATE REQUEST'
export const certificateBlockType = 'CERTIFICATE'

/** All blocks of a PEM text, in order; text between them is no matter. */
export function parsePem(text: string): PemBlock[] {
  const blocks: PemBlock[] = []
  for (const [, type = '', body = ''] of text.matchAll(/-----BEGIN ([^\n-]+)-----\r?\n([\s\S]*?)-----END \1-----/g)) {
    const lines = body.split(/\r?\n/)
    const headers = lines.filter((line) => line.includes(':'))
    const base64 = lines.filter((line) => !line.includes(':')).join('')
    blocks.push({ type, hasHeaders: headers.length > 0, bytes: Buffer.from(base64, 'base64') })
  }
  return blocks
}

/**
 * The parts of a request, out of the base64 of its PEM.
 * @returns the fault when it is none.
 */
export function parseCertificateRequest(base64: string): CertificateRequest | string {
  const [block] = parsePem(Buffer.from(base64, 'base64').toString('latin1'))
  if (block?.type !== requestBlockType) return `PEM block type must be ${requestBlockType}`
  const outer = onlyElement(block.bytes)
  const [info, algorithm, signature, ...more] = outer?.tag === sequence ? elementsOf(outer.content) : []
  const [, subject, publicKeyInfo] = info?.tag === sequence ? elementsOf(info.content) : []
  const [identifier] = algorithm?.tag === sequence ? elementsOf(algorithm.content) : []
  const isWhole = more.length === 0 && signature?.tag === bitString && identifier?.tag === objectIdentifier
  if (!info || !isWhole || subject?.tag !== sequence || publicKeyInfo?.tag !== sequence) return 'asn1: structure error: malformed certificate request'
  return {
    subject: elementsOf(subject.content).flatMap((set) => elementsOf(set.content).flatMap(attributeOf)),
    signed: info.whole,
    publicKeyInfo: publicKeyInfo.whole,
    algorithm: dotted(identifier.content),
    // The first byte of a bit string counts its unused bits: none in a signature.
    signature: signature.content.subarray(1),
  }
}

function attributeOf({ content }: Element): SubjectAttribute[] {
  const [type, value] = elementsOf(content)
  return type?.tag === objectIdentifier && value ? [{ type: dotted(type.content), value: new TextDecoder().decode(value.content) }] : []
}

/** Whether the bytes are one DER sequence of at least three parts: all that can be said of a certificate without reading it. */
export function looksLikeCertificate(bytes: Uint8Array): boolean {
  const outer = onlyElement(bytes)
  return outer?.tag === sequence && elementsOf(outer.content).length === 3
}

const sequence = 0x30
const bitString = 0x03
const objectIdentifier = 0x06

interface Element {
  readonly tag: number
  readonly content: Uint8Array
  readonly whole: Uint8Array
}

function onlyElement(bytes: Uint8Array): Element | undefined {
  const found = elementsOf(bytes)
  return found.length === 1 ? found[0] : undefined
}

/** The elements that fill the bytes; none when they do not fit. */
function elementsOf(bytes: Uint8Array): Element[] {
  const found: Element[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = lengthAt(bytes, at + 1)
    if (!length || length.end + length.value > bytes.length) return []
    const end = length.end + length.value
    found.push({ tag: bytes[at] ?? 0, content: bytes.subarray(length.end, end), whole: bytes.subarray(at, end) })
    at = end
  }
  return found
}

function lengthAt(bytes: Uint8Array, at: number): { readonly value: number; readonly end: number } | undefined {
  const first = bytes[at]
  if (first === undefined) return undefined
  if (first < 0x80) return { value: first, end: at + 1 }
  const size = first & 0x7f
  if (size === 0 || size > 4 || at + size >= bytes.length) return undefined
  let value = 0
  for (let i = 1; i <= size; i++) value = value * 256 + (bytes[at + i] ?? 0)
  return { value, end: at + 1 + size }
}

function dotted(bytes: Uint8Array): string {
  const [first = 0, ...rest] = bytes
  const parts = [Math.min(Math.floor(first / 40), 2), first - 40 * Math.min(Math.floor(first / 40), 2)]
  let value = 0
  for (const byte of rest) {
    value = value * 128 + (byte & 0x7f)
    if (byte & 0x80) continue
    parts.push(value)
    value = 0
  }
  return parts.join('.')
}
