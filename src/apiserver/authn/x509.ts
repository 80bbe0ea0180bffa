/**
 * Authenticates by client certificate (L3): the common name is the user, the organizations are the groups. TLS has verified the chain;
 * the time is checked again, because a connection may outlive its certificate.
 * Upstream: apiserver/pkg/authentication/request/x509 (CommonNameUserConversion).
 */
import { X509Certificate } from 'node:crypto'
// Node's toLegacyObject() leaves the tls module half loaded when it is the first to need it.
import 'node:tls'
import type { Clock } from '#base/clock'
import type { PeerCertificate, UserInfo } from '../request.ts'
import type { Authenticator } from './authenticator.ts'

interface Known {
  readonly user: UserInfo | undefined
  readonly validToMs: number
}

export function x509Authenticator(clock: Clock): Authenticator {
  // A connection keeps its certificate object, so its requests are not parsed again.
  const known = new WeakMap<Uint8Array, Known>()
  return {
    name: 'x509',
    authenticate({ peerCertificate }) {
      if (!peerCertificate) return undefined
      if (!peerCertificate.verified)
        return { decision: 'rejected', reason: `x509: ${peerCertificate.verifyError ?? 'certificate signed by unknown authority'}` }
      let found = known.get(peerCertificate.raw)
      if (!found) {
        found = read(peerCertificate)
        known.set(peerCertificate.raw, found)
      }
      if (clock.now() > found.validToMs) return { decision: 'rejected', reason: 'x509: certificate has expired or is not yet valid' }
      return found.user ? { decision: 'authenticated', user: found.user } : undefined
    },
  }
}

function read({ raw }: PeerCertificate): Known {
  const certificate = new X509Certificate(raw)
  // Node's types say string, but a repeated attribute is an array.
  const subject = certificate.toLegacyObject().subject as unknown as Readonly<Record<string, string | readonly string[] | undefined>>
  const name = [subject.CN ?? ''].flat().at(-1) ?? ''
  const validToMs = Date.parse(certificate.validTo)
  // As upstream: a certificate without a common name identifies nobody.
  if (name === '') return { user: undefined, validToMs }
  const groups = [...[subject.O ?? []].flat(), 'system:authenticated']
  const extra = { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${certificate.fingerprint256.replaceAll(':', '').toLowerCase()}`] }
  return { user: { name, groups: [...new Set(groups)], extra }, validToMs }
}
