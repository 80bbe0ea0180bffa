/**
 * Reads distinguished names (L0, pure): the one place that says which user and which groups a subject names. The API server, the kubelet,
 * admission and the signer all ask here. A string is decoded by its tag. The last of several common names counts; every organization counts.
 * Upstream: Go's crypto/x509/pkix Name.FillFromRDNSequence and ToRDNSequence; for certificates crypto/x509 parseName, for requests encoding/asn1.
 */
import { derElements, derIdentifier, derInside, derTag } from './der.ts'

export interface NameAttribute {
  /** Dotted object identifier. */
  readonly type: string
  /** Undefined: the value is of no string type that a name is read from, such as UniversalString, and counts for nothing. In requests only. */
  readonly value: string | undefined
}

/** Attributes in order; a relative name with several attributes adds each of them. */
export type DistinguishedName = readonly NameAttribute[]

export const nameType = {
  commonName: '2.5.4.3',
  serialNumber: '2.5.4.5',
  country: '2.5.4.6',
  locality: '2.5.4.7',
  province: '2.5.4.8',
  streetAddress: '2.5.4.9',
  organization: '2.5.4.10',
  organizationalUnit: '2.5.4.11',
  postalCode: '2.5.4.17',
} as const

/** The attributes of a DER name in a certificate; a fault in words when it is none, or when a value is no text. */
export function readCertificateName(der: Uint8Array): DistinguishedName | string {
  return readName(der, (tag) => ({ fault: `unsupported string type: ${tag}` }))
}

/** The attributes of a DER name in a certificate request, in which values that are no text are passed over; a fault in words when it is none. */
export function readRequestName(der: Uint8Array): DistinguishedName | string {
  return readName(der, () => undefined)
}

function readName(der: Uint8Array, readOther: (tag: number) => Text): DistinguishedName | string {
  const malformed = 'x509: invalid RDNSequence'
  const sets = derInside(der, derTag.sequence)
  if (!sets) return malformed
  const attributes: NameAttribute[] = []
  for (const { tag, content } of sets) {
    const pairs = tag === derTag.set ? derElements(content) : undefined
    if (!pairs) return malformed
    for (const pair of pairs) {
      const [type, value, ...more] = (pair.tag === derTag.sequence ? derElements(pair.content) : undefined) ?? []
      const identifier = type?.tag === derTag.objectIdentifier ? derIdentifier(type.content) : undefined
      if (identifier === undefined || !value || more.length > 0) return `${malformed}: invalid attribute`
      const text = readString(value.tag, value.content, readOther)
      if (typeof text === 'object') return `${malformed}: invalid attribute value: ${text.fault}`
      attributes.push({ type: identifier, value: text })
    }
  }
  return attributes
}

/** The subject of a DER certificate; a fault in words when there is none. */
export function subjectOfCertificate(der: Uint8Array): DistinguishedName | string {
  const [toBeSigned] = derInside(der, derTag.sequence) ?? []
  const parts = toBeSigned?.tag === derTag.sequence ? derElements(toBeSigned.content) : undefined
  // Serial number, algorithm, issuer and validity come before the subject, and before them a version, which is optional.
  const first = parts?.[0]?.tag === explicitVersion ? 1 : 0
  const issuer = parts?.[first + 2]
  const subject = parts?.[first + 4]
  if (!issuer || !subject) return 'x509: malformed certificate'
  // A certificate is valid as a whole: an issuer that cannot be read is as bad as a subject.
  const readIssuer = readCertificateName(issuer.whole)
  return typeof readIssuer === 'string' ? readIssuer : readCertificateName(subject.whole)
}

const explicitVersion = 0xa0

/** Every value of an attribute, in order. */
export function valuesOf(name: DistinguishedName, type: string): string[] {
  return name.flatMap((attribute) => (attribute.type === type && attribute.value !== undefined ? [attribute.value] : []))
}

/** The user of a subject: its last common name; empty when it has none. */
export function commonNameOf(name: DistinguishedName): string {
  return valuesOf(name, nameType.commonName).at(-1) ?? ''
}

/** The groups of a subject: all of its organizations, in order. */
export function organizationsOf(name: DistinguishedName): string[] {
  return valuesOf(name, nameType.organization)
}

/** The user that a client certificate stands for. */
export interface SubjectUser {
  readonly name: string
  readonly uid: string | undefined
  readonly groups: readonly string[]
}

/** The attribute that holds a user's UID. Upstream: apimachinery's asn1.X509UID. */
const uidType = '1.3.6.1.4.1.57683.2'

/**
 * The user of a client certificate, by the last common name. Undefined when there is no common name; a string when it is invalid: the error.
 * Upstream: apiserver/pkg/authentication/request/x509 CommonNameUserConversion.
 */
export function userOfCertificate(der: Uint8Array): SubjectUser | string | undefined {
  const subject = subjectOfCertificate(der)
  if (typeof subject === 'string') return subject
  const name = commonNameOf(subject)
  if (name === '') return undefined
  const uids = valuesOf(subject, uidType)
  if (uids.length > 1) return `expected 1 UID, but found multiple: [${uids.join(' ')}]`
  return uids[0] === '' ? 'UID cannot be an empty string' : { name, uid: uids[0], groups: organizationsOf(subject) }
}

type Text = string | undefined | { readonly fault: string }

function readString(tag: number, content: Uint8Array, readOther: (tag: number) => Text): Text {
  const check = (kind: string, isAllowed: (byte: number) => boolean) => (content.every(isAllowed) ? latin1(content) : { fault: `invalid ${kind}` })
  if (tag === derTag.utf8String) return readUtf8(content)
  if (tag === derTag.bmpString) return readBmp(content)
  // As upstream and OpenSSL: T.61 is read as ISO 8859-1, which it almost is.
  if (tag === derTag.t61String) return latin1(content)
  if (tag === derTag.printableString) return check('PrintableString', (byte) => isPrintable(byte) || byte === asterisk || byte === ampersand)
  if (tag === derTag.ia5String) return check('IA5String', (byte) => byte < 0x80)
  if (tag === derTag.numericString) return check('NumericString', (byte) => byte === 0x20 || (byte >= 0x30 && byte <= 0x39))
  return readOther(tag)
}

function readUtf8(content: Uint8Array): Text {
  try {
    // A byte order mark is part of the value: without it, another value would look the same.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content)
  } catch {
    return { fault: 'invalid UTF-8 string' }
  }
}

/** Two bytes a character, none of them a surrogate or a noncharacter; a terminator at the end is left out. */
function readBmp(content: Uint8Array): Text {
  if (content.length % 2 !== 0) return { fault: 'invalid BMPString' }
  const units: number[] = []
  for (let at = 0; at < content.length; at += 2) {
    const unit = (content[at] ?? 0) * 256 + (content[at + 1] ?? 0)
    const isReserved = unit >= 0xfffe || (unit >= 0xfdd0 && unit <= 0xfdef) || (unit >= 0xd800 && unit <= 0xdfff)
    if (isReserved) return { fault: 'invalid BMPString' }
    units.push(unit)
  }
  if (units.at(-1) === 0) units.pop()
  return units.map((unit) => String.fromCharCode(unit)).join('')
}

function latin1(content: Uint8Array): string {
  return Array.from(content, (byte) => String.fromCharCode(byte)).join('')
}

const asterisk = 0x2a
const ampersand = 0x26

/** Whether a PrintableString may hold the byte. */
export function isPrintable(byte: number): boolean {
  return /[A-Za-z0-9 '()+,\-./:=?]/.test(String.fromCharCode(byte))
}
