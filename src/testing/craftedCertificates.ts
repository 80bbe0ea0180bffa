/**
 * Certificates and certificate requests with any subject, written byte by byte (testing): what libraries refuse to write, and an attacker writes.
 */
import { createHash, generateKeyPairSync, type KeyObject, sign, X509Certificate } from 'node:crypto'
import { bareMap } from '#base/bareMap'
import { derInside, derTag } from '#base/der'
import { encodeDer, encodeIdentifier } from '#base/derEncoding'
import { nameType } from '#base/distinguishedName'

/** Tag and content of a value, or a text that becomes a UTF8String. */
export type CraftedValue = string | readonly [tag: number, content: Uint8Array]
/** One relative name: attributes that stand side by side. */
export type CraftedAttributes = readonly (readonly [type: string, value: CraftedValue])[]

/** `CN` and `O` may be written in place of dotted identifiers. */
const shortTypes: Readonly<Record<string, string>> = bareMap({ CN: nameType.commonName, O: nameType.organization })

/** DER of a name. */
export function craftedName(relative: readonly CraftedAttributes[]): Uint8Array {
  const value = (given: CraftedValue) => (typeof given === 'string' ? encodeDer(derTag.utf8String, Buffer.from(given)) : encodeDer(...given))
  const pair = ([type, given]: CraftedAttributes[number]) => encodeDer(derTag.sequence, encodeIdentifier(shortTypes[type] ?? type), value(given))
  return encodeDer(derTag.sequence, ...relative.map((attributes) => encodeDer(derTag.set, ...attributes.map(pair))))
}

/** Two bytes a character. */
export function bmp(text: string): CraftedValue {
  return [derTag.bmpString, Buffer.from(text, 'utf16le').swap16()]
}

/** Four bytes a character. */
export function universal(text: string): CraftedValue {
  return [0x1c, Buffer.from([...text].flatMap((character) => [0, 0, 0, character.charCodeAt(0)]))]
}

export interface CraftedKey {
  readonly privateKey: KeyObject
  readonly publicKeyInfo: Uint8Array
}

export function craftedKey(): CraftedKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { privateKey, publicKeyInfo: publicKey.export({ type: 'spki', format: 'der' }) }
}

const ecdsaWithSha256 = encodeDer(derTag.sequence, encodeIdentifier('1.2.840.10045.4.3.2'))

function signed(content: Uint8Array, key: KeyObject): Uint8Array {
  const signature = Buffer.concat([Buffer.of(0), sign('sha256', content, key)])
  return encodeDer(derTag.sequence, content, ecdsaWithSha256, encodeDer(derTag.bitString, signature))
}

function pem(type: string, der: Uint8Array): string {
  const lines = Buffer.from(der)
    .toString('base64')
    .match(/.{1,64}/g)
  return `-----BEGIN ${type}-----\n${lines?.join('\n')}\n-----END ${type}-----\n`
}

export interface CraftedRequestOptions {
  readonly key?: CraftedKey
  /** Another key that signs: a forgery. */
  readonly signWith?: KeyObject
  /** DER of each requested extension. */
  readonly extensions?: readonly Uint8Array[]
  /** The key that is asked for, when it is another. */
  readonly publicKeyInfo?: Uint8Array
}

/** PEM of a request. */
export function craftedRequest(relative: readonly CraftedAttributes[], options: CraftedRequestOptions = {}): string {
  const { key = craftedKey(), extensions = [] } = options
  const wanted = encodeDer(derTag.sequence, encodeIdentifier('1.2.840.113549.1.9.14'), encodeDer(derTag.set, encodeDer(derTag.sequence, ...extensions)))
  const content = encodeDer(
    derTag.sequence,
    encodeDer(derTag.integer, Uint8Array.of(0)),
    craftedName(relative),
    options.publicKeyInfo ?? key.publicKeyInfo,
    extensions.length > 0 ? encodeDer(0xa0, wanted) : encodeDer(0xa0),
  )
  return pem('CERTIFICATE REQUEST', signed(content, options.signWith ?? key.privateKey))
}

/** DER of an extension. */
export function craftedExtension(identifier: string, content: Uint8Array, critical = false): Uint8Array {
  const flag = critical ? [encodeDer(0x01, Uint8Array.of(0xff))] : []
  return encodeDer(derTag.sequence, encodeIdentifier(identifier), ...flag, encodeDer(derTag.octetString, content))
}

function time(ms: number): Uint8Array {
  const text = new Date(ms).toISOString().replaceAll(/[-:T]|\.\d+/g, '')
  return encodeDer(0x18, Buffer.from(text))
}

export interface CraftedCertificate {
  /** PEM. */
  readonly cert: string
  readonly key: string
}

/** A client certificate that the authority signs, valid around now; its key is of the kind that `craftedKey` makes. */
export function craftedCertificate(authority: CraftedCertificate & { readonly privateKey: KeyObject }, relative: readonly CraftedAttributes[]) {
  const key = craftedKey()
  const issuer = new X509Certificate(authority.cert)
  const [toBeSigned] = derInside(issuer.raw, derTag.sequence) ?? []
  const subjectOfIssuer = derInside(toBeSigned?.whole ?? new Uint8Array(), derTag.sequence)?.[5]
  if (!subjectOfIssuer) throw new Error('the authority has no subject')
  const nowMs = Date.now()
  const serial = createHash('sha256').update(key.publicKeyInfo).digest().subarray(0, 8)
  serial[0] = 1
  const content = encodeDer(
    derTag.sequence,
    encodeDer(0xa0, encodeDer(derTag.integer, Uint8Array.of(2))),
    encodeDer(derTag.integer, serial),
    ecdsaWithSha256,
    subjectOfIssuer.whole,
    encodeDer(derTag.sequence, time(nowMs - 3_600_000), time(nowMs + 3_600_000)),
    craftedName(relative),
    key.publicKeyInfo,
  )
  const cert = pem('CERTIFICATE', signed(content, authority.privateKey))
  return { cert, key: key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}
