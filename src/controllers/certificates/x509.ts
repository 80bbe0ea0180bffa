/**
 * Signs certificate requests (L3). The X.509 library is loaded only when there is one: a start should not pay for it. It writes certificates only;
 * `#api/kinds/certificates/pkcs10` reads requests, so that what is signed is what was checked.
 * Upstream: pkg/controller/certificates/authority (v1.36).
 */
import type { webcrypto } from 'node:crypto'
import type { AlternativeNames, CertificateRequest } from '#api/kinds/certificates/pkcs10'
import { bareMap } from '#base/bareMap'
import { derTag } from '#base/der'
import { encodeDer } from '#base/derEncoding'
import { encodeKeptName } from '#base/nameEncoding'
import { signatureFault } from '#client/requestSignature'

/** PEM. */
export interface CertificateAuthority {
  readonly cert: string
  readonly key: string
}

async function library() {
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  x509.cryptoProvider.set(globalThis.crypto)
  return x509
}

type Library = Awaited<ReturnType<typeof library>>
/** Certificates begin a little earlier, for clocks that differ; those that live shorter than this get the time added. */
const backdateMs = 5 * 60_000
const shortMs = 8 * 3_600_000

export interface SignOptions {
  readonly usages: readonly string[]
  readonly durationMs: number
  readonly nowMs: number
}

/**
 * The certificate for a request, with its subject, alternative names and key, and none of its other wishes.
 * @returns the base64 of its PEM. @throws Error for a request that its key has not signed, an authority that has expired, and usages that are none
 */
export async function signRequest(request: CertificateRequest, authority: CertificateAuthority, { usages, durationMs, nowMs }: SignOptions): Promise<string> {
  const forged = signatureFault(request)
  if (forged !== undefined) throw new Error(`unable to verify certificate request signature: ${forged}`)
  const x509 = await library()
  const issuer = new x509.X509Certificate(authority.cert)
  const expiresMs = issuer.notAfter.getTime()
  if (nowMs >= expiresMs) throw new Error(`refusing to sign a certificate that expires in the past: NotAfter=${issuer.notAfter.toISOString()}`)
  const { flags, extended } = keyUsages(x509, usages)
  const names = encodeNames(request)
  const subject = encodeKeptName(request.subject)
  const hasSubject = subject.length > encodeDer(derTag.sequence).length
  const algorithm = issuer.publicKey.algorithm as webcrypto.RsaHashedKeyAlgorithm | webcrypto.EcKeyAlgorithm
  const signingAlgorithm = algorithm.name === 'ECDSA' ? { ...algorithm, hash: 'SHA-256' } : { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
  const { createPrivateKey } = await import('node:crypto')
  const pkcs8 = createPrivateKey(authority.key).export({ type: 'pkcs8', format: 'der' })
  const signingKey = await crypto.subtle.importKey('pkcs8', pkcs8, signingAlgorithm, false, ['sign'])
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: new x509.Name(subject),
    issuer: issuer.subjectName,
    notBefore: new Date(nowMs - backdateMs),
    notAfter: new Date(Math.min(nowMs + durationMs - (durationMs < shortMs ? 0 : backdateMs), expiresMs)),
    signingAlgorithm,
    publicKey: new x509.PublicKey(request.publicKeyInfo),
    signingKey,
    extensions: [
      ...(flags === 0 ? [] : [new x509.KeyUsagesExtension(flags, true)]),
      ...(extended.length === 0 ? [] : [new x509.ExtendedKeyUsageExtension(extended)]),
      new x509.BasicConstraintsExtension(false, undefined, true),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      ...(names ? [new x509.Extension(subjectAlternativeName, !hasSubject, names)] : []),
    ],
  })
  return Buffer.from(`${certificate.toString('pem')}\n`).toString('base64')
}

const subjectAlternativeName = '2.5.29.17'

/** DER of the alternative names, in upstream's order; undefined: there are none. */
function encodeNames({ dnsNames, emailAddresses, ipAddresses, uris }: AlternativeNames): Uint8Array | undefined {
  const texts = (tag: number, values: readonly string[]) => values.map((value) => encodeDer(tag, Buffer.from(value, 'latin1')))
  const addresses = ipAddresses.map((address) => encodeDer(0x87, addressBytes(address)))
  const all = [...texts(0x82, dnsNames), ...texts(0x81, emailAddresses), ...addresses, ...texts(0x86, uris)]
  return all.length === 0 ? undefined : encodeDer(derTag.sequence, ...all)
}

/** The bytes of an address as the reader of requests writes it: four numbers, or eight groups. */
function addressBytes(address: string): Uint8Array {
  if (!address.includes(':')) return Uint8Array.from(address.split('.').map(Number))
  return Uint8Array.from(address.split(':').flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]))
}

/** When a certificate ends, in milliseconds since the epoch. @throws Error when it is no PEM */
export async function expiryOf(base64: string): Promise<number> {
  const { X509Certificate } = await import('node:crypto')
  return Date.parse(new X509Certificate(pemText(base64)).validTo)
}

function keyUsages(x509: Library, usages: readonly string[]): { flags: number; extended: string[] } {
  const flag = x509.KeyUsageFlags
  const flags: Readonly<Record<string, number>> = bareMap({
    signing: flag.digitalSignature,
    'digital signature': flag.digitalSignature,
    'content commitment': flag.nonRepudiation,
    'key encipherment': flag.keyEncipherment,
    'key agreement': flag.keyAgreement,
    'data encipherment': flag.dataEncipherment,
    'cert sign': flag.keyCertSign,
    'crl sign': flag.cRLSign,
    'encipher only': flag.encipherOnly,
    'decipher only': flag.decipherOnly,
  })
  const unknown = usages.filter((usage) => flags[usage] === undefined && extendedUsages[usage] === undefined)
  if (unknown.length > 0) throw new Error(`unrecognized usage values: [${unknown.map((usage) => JSON.stringify(usage)).join(' ')}]`)
  return {
    flags: usages.reduce((sum, usage) => sum | (flags[usage] ?? 0), 0),
    extended: [...new Set(Object.entries(extendedUsages).flatMap(([usage, identifier]) => (usages.includes(usage) ? identifier : [])))],
  }
}

const extendedUsages: Readonly<Record<string, string>> = bareMap({
  any: '2.5.29.37.0',
  'server auth': '1.3.6.1.5.5.7.3.1',
  'client auth': '1.3.6.1.5.5.7.3.2',
  'code signing': '1.3.6.1.5.5.7.3.3',
  'email protection': '1.3.6.1.5.5.7.3.4',
  's/mime': '1.3.6.1.5.5.7.3.4',
  'ipsec end system': '1.3.6.1.5.5.7.3.5',
  'ipsec tunnel': '1.3.6.1.5.5.7.3.6',
  'ipsec user': '1.3.6.1.5.5.7.3.7',
  timestamping: '1.3.6.1.5.5.7.3.8',
  'ocsp signing': '1.3.6.1.5.5.7.3.9',
  'microsoft sgc': '1.3.6.1.4.1.311.10.3.3',
  'netscape sgc': '2.16.840.1.113730.4.1',
})

function serialNumber(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return Buffer.from(bytes).toString('hex')
}

function pemText(base64: string): string {
  return Buffer.from(base64, 'base64').toString('latin1')
}
