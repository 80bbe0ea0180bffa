/**
 * Makes certificates (L5): a self-signed authority and what it signs, ECDSA P-256. The X.509 library is loaded only when something
 * has to be made, because a start with existing files should not pay for it.
 */
import { createPrivateKey, KeyObject, type webcrypto } from 'node:crypto'
import { isIP } from 'node:net'

export interface KeyPair {
  /** PEM. */
  readonly cert: string
  /** PEM; new ones are SEC 1, as upstream writes them. */
  readonly key: string
}

export interface CertificateRequest {
  readonly commonName: string
  readonly organizations?: readonly string[]
  readonly usage: 'client' | 'server' | 'both'
  /** DNS names and IP addresses. */
  readonly hosts?: readonly string[]
  readonly validDays: number
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const msPerDay = 86_400_000
/** Clocks of the machines of a cluster differ a little; upstream dates certificates back too. */
const backdateMs = 300_000

/** Loaded with the first certificate that is made. */
export async function x509Library() {
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  x509.cryptoProvider.set(globalThis.crypto)
  return x509
}

/** A new self-signed certificate authority. */
export async function createAuthority(commonName: string, nowMs: number, validDays: number): Promise<KeyPair> {
  return signItself(commonName, await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']), nowMs, validDays)
}

/**
 * The authority with the same name and key for a longer time. Its earlier certificates stay valid, and clients that know only its older certificate trust
 * its new ones until the older certificate expires.
 */
export async function renewAuthority(authority: KeyPair, nowMs: number, validDays: number): Promise<KeyPair> {
  const x509 = await x509Library()
  const old = new x509.X509Certificate(authority.cert)
  const privateKey = await crypto.subtle.importKey('pkcs8', pkcs8(authority.key), algorithm, true, ['sign'])
  const keys = { privateKey, publicKey: await old.publicKey.export(algorithm, ['verify']) }
  return signItself(old.subjectName.getField('CN')[0] ?? '', keys, nowMs, validDays)
}

async function signItself(commonName: string, keys: webcrypto.CryptoKeyPair, nowMs: number, validDays: number): Promise<KeyPair> {
  const x509 = await x509Library()
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `CN=${commonName}`,
    notBefore: new Date(nowMs - backdateMs),
    notAfter: new Date(nowMs + validDays * msPerDay),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { cert: certificate.toString('pem'), key: exportKey(keys.privateKey) }
}

/** A certificate and key signed by the authority. Each organization is an attribute of its own, as Kubernetes reads groups. */
export async function issueCertificate(authority: KeyPair, request: CertificateRequest, nowMs: number): Promise<KeyPair> {
  const x509 = await x509Library()
  const issuer = new x509.X509Certificate(authority.cert)
  const signingKey = await crypto.subtle.importKey('pkcs8', pkcs8(authority.key), algorithm, false, ['sign'])
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const usages = [
    ...(request.usage === 'server' ? [] : [x509.ExtendedKeyUsage.clientAuth]),
    ...(request.usage === 'client' ? [] : [x509.ExtendedKeyUsage.serverAuth]),
  ]
  const hosts = (request.hosts ?? []).map((host) => ({ type: isIP(host) ? ('ip' as const) : ('dns' as const), value: host }))
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: [...(request.organizations ?? []).map((organization) => ({ O: [organization] })), { CN: [request.commonName] }],
    issuer: issuer.subject,
    notBefore: new Date(nowMs - backdateMs),
    notAfter: new Date(Math.min(nowMs + request.validDays * msPerDay, issuer.notAfter.getTime())),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment, true),
      new x509.ExtendedKeyUsageExtension(usages),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      ...(hosts.length > 0 ? [new x509.SubjectAlternativeNameExtension(hosts)] : []),
    ],
  })
  return { cert: certificate.toString('pem'), key: exportKey(keys.privateKey) }
}

/** A key whose certificate is signed elsewhere. */
export async function newKey() {
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  return { keys, algorithm, pem: exportKey(keys.privateKey) }
}

/** A key for signing ServiceAccount tokens: PEM. */
export async function createSigningKey(): Promise<string> {
  return (await newKey()).pem
}

function serialNumber(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return Buffer.from(bytes).toString('hex')
}

/** SEC 1 names the key's kind in the PEM's heading: some clients, such as fabric8, take a key without it for RSA. Upstream: client-go/util/keyutil. */
function exportKey(key: webcrypto.CryptoKey): string {
  return KeyObject.from(key).export({ type: 'sec1', format: 'pem' }).toString()
}

function pkcs8(pem: string): Buffer {
  return createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' })
}
