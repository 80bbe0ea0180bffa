/**
 * Reads PKCS#10 certificate requests (L1, pure): the subject of a request, its other names and its key. Validation, admission, the approver and the
 * signer read requests here and nowhere else, so that all of them see the same one. `#client/requestSignature` checks the signature. RFC 2986.
 * Upstream: pkg/apis/certificates ParseCSR, Go's crypto/x509 ParseCertificateRequest.
 */
import { type DerElement, derElements, derIdentifier, derInside, derTag } from '#base/der'
import { commonNameOf, type DistinguishedName, nameType, organizationsOf, readRequestName } from '#base/distinguishedName'
import { parsePem } from './pem.ts'

/** The subject alternative names. Names of other kinds are not read, and are not signed. */
export interface AlternativeNames {
  readonly dnsNames: readonly string[]
  /** As they are written in text. */
  readonly ipAddresses: readonly string[]
  readonly emailAddresses: readonly string[]
  readonly uris: readonly string[]
}

export interface CertificateRequest extends AlternativeNames {
  readonly subject: DistinguishedName
  readonly commonName: string
  readonly organizations: readonly string[]
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

const malformed = 'asn1: structure error: malformed certificate request'

/**
 * Reads the first PEM block, as upstream.
 * @param base64 the PEM, as the API carries it
 * @returns the fault when it is none.
 */
export function parseCertificateRequest(base64: string): CertificateRequest | string {
  const [block] = parsePem(Buffer.from(base64, 'base64').toString('latin1'))
  return block?.type === requestBlockType ? parseRequestDer(block.bytes) : `PEM block type must be ${requestBlockType}`
}

/** @returns the fault when the bytes are no request */
export function parseRequestDer(der: Uint8Array): CertificateRequest | string {
  const [info, algorithm, signature, ...more] = derInside(der, derTag.sequence) ?? []
  const [version, subject, publicKeyInfo, attributes] = (info?.tag === derTag.sequence ? derElements(info.content) : undefined) ?? []
  const [identifier] = (algorithm?.tag === derTag.sequence ? derElements(algorithm.content) : undefined) ?? []
  const signedWith = identifier?.tag === derTag.objectIdentifier ? derIdentifier(identifier.content) : undefined
  // The first byte of a bit string counts its unused bits: none in a signature.
  const isSigned = signature?.tag === derTag.bitString && signature.content[0] === 0 && signedWith !== undefined
  if (!info || !isSigned || more.length > 0 || version?.tag !== derTag.integer || !subject || publicKeyInfo?.tag !== derTag.sequence) return malformed
  const name = readRequestName(subject.whole)
  if (typeof name === 'string') return name
  const names = alternativeNames(attributes)
  if (typeof names === 'string') return names
  return {
    ...names,
    subject: name,
    commonName: commonNameOf(name),
    organizations: organizationsOf(name),
    signed: info.whole,
    publicKeyInfo: publicKeyInfo.whole,
    algorithm: signedWith,
    signature: signature.content.subarray(1),
  }
}

/** Why this cluster's signers refuse a subject; undefined when they accept it. Another reader of the certificate could take one of two names for the user. */
export function subjectFault(subject: DistinguishedName): string | undefined {
  const names = subject.filter(({ type }) => type === nameType.commonName)
  if (names.length > 1) return `subject has ${names.length} common names, only one is allowed`
  const isUnread = ({ type, value }: DistinguishedName[number]) => value === undefined && (type === nameType.commonName || type === nameType.organization)
  return subject.some(isUnread) ? 'subject has a common name or an organization of an unsupported string type' : undefined
}

const attributesTag = 0xa0
const extensionRequest = '1.2.840.113549.1.9.14'
const subjectAlternativeName = '2.5.29.17'

function alternativeNames(attributes: DerElement | undefined): AlternativeNames | string {
  const none: AlternativeNames = { dnsNames: [], ipAddresses: [], emailAddresses: [], uris: [] }
  if (attributes?.tag !== attributesTag) return none
  const list = derElements(attributes.content)
  if (!list) return malformed
  const extensions = list.flatMap(({ content }) => {
    const [type, values] = derElements(content) ?? []
    const isRequest = type?.tag === derTag.objectIdentifier && derIdentifier(type.content) === extensionRequest
    const [first] = (isRequest && values?.tag === derTag.set ? derElements(values.content) : undefined) ?? []
    return first ? [first] : []
  })
  const seen = new Set<string>()
  let names: AlternativeNames | string = none
  for (const { whole } of extensions) {
    for (const extension of derInside(whole, derTag.sequence) ?? [undefined]) {
      const [type, ...rest] = (extension?.tag === derTag.sequence ? derElements(extension.content) : undefined) ?? []
      const identifier = type?.tag === derTag.objectIdentifier ? derIdentifier(type.content) : undefined
      const value = rest.at(-1)
      if (identifier === undefined || value?.tag !== derTag.octetString) return malformed
      if (seen.has(identifier)) return 'x509: certificate request contains duplicate requested extensions'
      seen.add(identifier)
      if (identifier === subjectAlternativeName) names = readAlternativeNames(value.content)
      if (typeof names === 'string') return names
    }
  }
  return names
}

const generalName = { email: 0x81, dns: 0x82, uri: 0x86, ip: 0x87 }

function readAlternativeNames(der: Uint8Array): AlternativeNames | string {
  const names = derInside(der, derTag.sequence)
  if (!names) return 'x509: invalid subject alternative names'
  const texts = (tag: number) => names.filter((name) => name.tag === tag).map(({ content }) => Buffer.from(content).toString('latin1'))
  const kinds = [
    ['rfc822Name', generalName.email],
    ['dNSName', generalName.dns],
    ['uniformResourceIdentifier', generalName.uri],
  ] as const
  for (const [kind, tag] of kinds)
    if (names.some((name) => name.tag === tag && name.content.some((byte) => byte >= 0x80))) return `x509: SAN ${kind} is malformed`
  const addresses = names.filter(({ tag }) => tag === generalName.ip).map(({ content }) => content)
  const wrong = addresses.find(({ length }) => length !== 4 && length !== 16)
  if (wrong) return `x509: cannot parse IP address of length ${wrong.length}`
  return {
    dnsNames: texts(generalName.dns),
    ipAddresses: addresses.map(addressText),
    emailAddresses: texts(generalName.email),
    uris: texts(generalName.uri),
  }
}

function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i] ?? 0) * 256 + (bytes[2 * i + 1] ?? 0)).toString(16))
  return groups.join(':')
}

/** Whether the bytes are one DER sequence of three parts: all that can be said of a certificate without reading it. */
export function looksLikeCertificate(bytes: Uint8Array): boolean {
  return derInside(bytes, derTag.sequence)?.length === 3
}
