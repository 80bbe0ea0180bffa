/**
 * Reads a connection's client certificate (L3), once per connection, and finds which authority signed it: the one for users or the one for front proxies.
 * TLS has checked the chain against both together, so that a certificate of one never passes for one of the other.
 * Upstream: --client-ca-file and --requestheader-client-ca-file.
 */
import { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { certificateBlocks } from '#base/pem'
import type { PeerCertificate } from '../core/request.ts'
import type { Peer } from './incoming.ts'

/** PEM, one or more certificates each. */
export interface ClientAuthorities {
  /** Signs certificates of users. */
  readonly clientCa?: string | Buffer | undefined
  /** Signs certificates of front proxies, which send the user in headers. */
  readonly requestHeaderCa?: string | Buffer | undefined
}

const nobody: Peer = { remoteAddress: '', peerCertificate: undefined }
/** A chain longer than this is not followed. */
const maxChainLength = 10

export interface PeerReader {
  /** Called when the connection begins; the authorities of that time apply to it until it ends. */
  peerOf(socket: TLSSocket | undefined): Peer
  /** For connections from now on. */
  trust(authorities: ClientAuthorities): void
}

export function peerReader(authorities: ClientAuthorities): PeerReader {
  const peers = new WeakMap<TLSSocket, Peer>()
  let users = fingerprintsOf(authorities.clientCa)
  let proxies = fingerprintsOf(authorities.requestHeaderCa)
  const certificateOf = (socket: TLSSocket): PeerCertificate | undefined => {
    const raw = typeof socket.getPeerX509Certificate === 'function' ? socket.getPeerX509Certificate()?.raw : undefined
    if (!raw) return undefined
    const error = socket.authorizationError as Error | string | undefined
    if (!socket.authorized || proxies.size === 0) return { raw, verified: socket.authorized, ...(error ? { verifyError: String(error) } : {}) }
    const root = rootOf(socket) ?? ''
    return { raw, verified: users.has(root), isFrontProxy: proxies.has(root) }
  }
  return {
    peerOf(socket) {
      if (!socket) return nobody
      let peer = peers.get(socket)
      if (!peer) {
        peer = { remoteAddress: socket.remoteAddress ?? '', peerCertificate: certificateOf(socket) }
        peers.set(socket, peer)
      }
      return peer
    },
    trust({ clientCa, requestHeaderCa }) {
      users = fingerprintsOf(clientCa)
      proxies = fingerprintsOf(requestHeaderCa)
    },
  }
}

/** The certificate at the end of the chain, with every signature checked: certificates that a client sends are not trusted by themselves. */
function rootOf(socket: TLSSocket): string | undefined {
  let certificate = socket.getPeerCertificate(true)
  for (let length = 0; length < maxChainLength; length++) {
    const { issuerCertificate } = certificate
    if (!issuerCertificate) return undefined
    if (issuerCertificate.fingerprint256 === certificate.fingerprint256) return certificate.fingerprint256
    if (!new X509Certificate(certificate.raw).verify(new X509Certificate(issuerCertificate.raw).publicKey)) return undefined
    certificate = issuerCertificate
  }
  return undefined
}

function fingerprintsOf(pem: string | Buffer | undefined): ReadonlySet<string> {
  return new Set(certificateBlocks(String(pem ?? '')).map((text) => new X509Certificate(text).fingerprint256))
}
