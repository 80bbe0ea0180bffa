/**
 * Judges certificates of servers as Go does (L3), where OpenSSL differs. Every certificate of a bundle is a trust anchor, an intermediate authority too.
 * OpenSSL takes a certificate for self-signed when its issuer and its subject have one name and no key identifiers, such as two empty names, and
 * then does not look for an issuer: such a certificate is checked here, against the anchors that may have signed it.
 * Upstream: Go's crypto/x509 Certificate.Verify.
 */
import { X509Certificate } from 'node:crypto'
import { Agent as HttpsAgent } from 'node:https'
import {
  type ConnectionOptions,
  checkServerIdentity,
  type DetailedPeerCertificate,
  type PeerCertificate,
  type TLSSocket,
  connect as tlsConnect,
} from 'node:tls'
import { derElements, derIdentifier, derInside, derTag } from '#base/der'
import { certificateBlocks } from '#base/pem'

type CreatedSocket = ReturnType<HttpsAgent['createConnection']>

/** Node's agent, with connections that trust as Go does. */
export class TrustingHttpsAgent extends HttpsAgent {
  override createConnection(...[options, created]: Parameters<HttpsAgent['createConnection']>): CreatedSocket {
    const trust = new ServerTrust(options as ConnectionOptions)
    const socket = super.createConnection(trust.options as typeof options, created)
    trust.judge(socket as TLSSocket)
    return socket
  }
}

/** Connects and trusts as Go does. */
export function connectTrusting(options: ConnectionOptions): TLSSocket {
  const trust = new ServerTrust(options)
  const socket = tlsConnect(trust.options)
  trust.judge(socket)
  return socket
}

/** One connection: OpenSSL checks the chain first. */
class ServerTrust {
  readonly options: ConnectionOptions
  readonly #given: ConnectionOptions
  readonly #anchors: readonly X509Certificate[]
  /** The error in the names of the certificate. */
  #wrongNames: Error | undefined

  constructor(given: ConnectionOptions) {
    this.#given = given
    this.options = { ...given, allowPartialTrustChain: true } as ConnectionOptions
    this.#anchors = this.#isJudged ? anchorsOf(given.ca) : []
    if (!this.#isJudged) return
    // OpenSSL would stop reading at a block that does not parse. Without any certificate in it, the bundle is OpenSSL's to refuse.
    if (this.#anchors.length > 0) this.options.ca = this.#anchors.map(String)
    this.options.rejectUnauthorized = false
    this.options.checkServerIdentity = (host, certificate) => {
      this.#wrongNames = this.#checkNames(host, certificate)
      return this.#wrongNames
    }
  }

  get #isJudged(): boolean {
    return this.#given.rejectUnauthorized !== false && this.#given.ca !== undefined
  }

  /** Called at once with the new socket, before its handshake: a connection that is not trusted ends before anything is written to it. */
  judge(socket: TLSSocket): void {
    if (this.#isJudged) socket.prependOnceListener('secureConnect', () => this.#judge(socket))
  }

  #judge(socket: TLSSocket): void {
    if (socket.authorized) return
    try {
      const error = this.#wrongNames ?? this.#errorOf(socket)
      if (error) socket.destroy(error)
    } catch (error) {
      // Nothing above this listener of an event would catch it.
      socket.destroy(error as Error)
    }
  }

  #errorOf(socket: TLSSocket): Error | undefined {
    // Node's type says Error; it is the code.
    const code = String(socket.authorizationError)
    const certificate = socket.getPeerCertificate(true)
    const isTrusted = seeminglySelfSigned.has(code) && isSignedByAnchor(new X509Certificate(certificate.raw), this.#anchors, Date.now())
    if (isTrusted) return this.#checkNames(this.#given.servername || (this.#given.host ?? ''), certificate)
    const isWeak = code === 'UNSPECIFIED' && hasWeakSignature(certificate)
    return Object.assign(new Error(isWeak ? weakSignature : (reasons.get(code) ?? code)), { code })
  }

  #checkNames(host: string, certificate: PeerCertificate): Error | undefined {
    return (this.#given.checkServerIdentity ?? checkServerIdentity)(host, certificate)
  }
}

const seeminglySelfSigned: ReadonlySet<string> = new Set(['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN'])

/** OpenSSL's words for a chain with a weak signature, for which Node has no code. */
export const weakSignature = 'CA signature digest algorithm too weak'

/** OpenSSL's words, for the codes that have no text of Go's elsewhere. */
const reasons: ReadonlyMap<string, string> = new Map([
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'self-signed certificate in certificate chain'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'unable to verify the first certificate'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'unable to get local issuer certificate'],
  ['CERT_HAS_EXPIRED', 'certificate has expired'],
  ['CERT_NOT_YET_VALID', 'certificate is not yet valid'],
])

/** The certificates of the bundle. Blocks that do not parse are skipped, as Go does: a bundle is text from the configuration of a backend, which a tenant may write. */
function anchorsOf(ca: ConnectionOptions['ca']): X509Certificate[] {
  const texts = [ca ?? []].flat().map((one) => (typeof one === 'string' ? one : Buffer.from(one as Uint8Array).toString('latin1')))
  return texts.flatMap(certificateBlocks).flatMap((text) => parsed(text) ?? [])
}

function parsed(text: string): X509Certificate | undefined {
  try {
    return new X509Certificate(text)
  } catch {
    return undefined
  }
}

const serverUsages = ['1.3.6.1.5.5.7.3.1', '2.5.29.37.0']

function isSignedByAnchor(certificate: X509Certificate, anchors: readonly X509Certificate[], nowMs: number): boolean {
  if (!isUsable(certificate, nowMs) || !strongAlgorithms.has(signatureAlgorithm(certificate.raw) ?? '')) return false
  const mayHaveSigned = (anchor: X509Certificate) => anchor.ca && isUsable(anchor, nowMs) && !hasNameConstraints(anchor) && !hasShortKey(anchor)
  return anchors.some((anchor) => mayHaveSigned(anchor) && certificate.checkIssued(anchor) && certificate.verify(anchor.publicKey))
}

/** Go's limit for keys of RSA. */
function hasShortKey({ publicKey }: X509Certificate): boolean {
  return (publicKey.asymmetricKeyDetails?.modulusLength ?? 1024) < 1024
}

/** Whether it is valid now and may be used by servers. */
function isUsable({ validFrom, validTo, keyUsage }: X509Certificate, nowMs: number): boolean {
  // Node calls the extended key usages so.
  const usages = keyUsage as readonly string[] | undefined
  const isForServers = usages === undefined || usages.length === 0 || usages.some((usage) => serverUsages.includes(usage))
  return isForServers && Date.parse(validFrom) <= nowMs && nowMs <= Date.parse(validTo)
}

/** Signatures over MD5 and SHA-1, which Go refuses. */
const weakAlgorithms: ReadonlySet<string> = new Set(['1.2.840.113549.1.1.4', '1.2.840.113549.1.1.5', '1.2.840.10040.4.3', '1.2.840.10045.4.1'])

/** SHA-2 with RSA or ECDSA, and Ed25519. Go also takes RSA-PSS with some parameters, which are not read here. */
const strongAlgorithms: ReadonlySet<string> = new Set([
  ...['11', '12', '13'].map((last) => `1.2.840.113549.1.1.${last}`),
  ...['2', '3', '4'].map((last) => `1.2.840.10045.4.3.${last}`),
  '1.3.101.112',
])

function signatureAlgorithm(certificate: Uint8Array): string | undefined {
  const algorithm = derInside(certificate, derTag.sequence)?.[1]
  const [identifier] = (algorithm && derElements(algorithm.content)) ?? []
  return identifier && derIdentifier(identifier.content)
}

function isWeaklySigned(certificate: Uint8Array): boolean {
  const name = signatureAlgorithm(certificate)
  return name === undefined || weakAlgorithms.has(name)
}

/** Whether OpenSSL refuses the chain for one of its signatures; the anchor's own signature does not count. */
function hasWeakSignature(leaf: DetailedPeerCertificate): boolean {
  for (let at = leaf; at.raw; at = at.issuerCertificate) {
    if (!at.issuerCertificate || at.issuerCertificate === at) return at === leaf && isWeaklySigned(at.raw)
    if (isWeaklySigned(at.raw)) return true
  }
  return false
}

/** The identifier 2.5.29.30: only OpenSSL evaluates such constraints. */
const nameConstraints = Buffer.from([0x06, 0x03, 0x55, 0x1d, 0x1e])

function hasNameConstraints({ raw }: X509Certificate): boolean {
  return raw.includes(nameConstraints)
}
