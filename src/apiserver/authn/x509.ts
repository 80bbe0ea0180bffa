/**
 * Authenticates by client certificate (L3): the last common name is the user, the organizations are the groups, and a subject may carry a uid.
 * TLS has verified the chain; the time is checked again, because a connection may outlive its certificate.
 * Upstream: apiserver/pkg/authentication/request/x509 (CommonNameUserConversion).
 */
import { X509Certificate } from 'node:crypto'
import type { Clock } from '#base/clock'
import { userOfCertificate } from '#base/distinguishedName'
import { type Metrics, noMetrics } from '#base/metrics'
import type { PeerCertificate, UserInfo } from '../core/request.ts'
import type { AuthenticationResult, Authenticator } from './authenticator.ts'

interface Known {
  readonly result: AuthenticationResult
  readonly validToMs: number
}

/** Buckets of the remaining lifetime of used certificates. Upstream: apiserver_client_certificate_expiration_seconds. */
const expirationBuckets = [0, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 345_600, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000]
const expired: AuthenticationResult = { decision: 'rejected', reason: 'x509: certificate has expired or is not yet valid' }

export function x509Authenticator(clock: Clock, metrics: Metrics = noMetrics): Authenticator {
  // A connection keeps its certificate object, so its requests are not parsed again.
  const known = new WeakMap<Uint8Array, Known>()
  const remaining = metrics
    .histogram({
      name: 'apiserver_client_certificate_expiration_seconds',
      help: 'How much longer the certificates that were shown are good, in seconds.',
      buckets: expirationBuckets,
    })
    .series({})
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
      const leftMs = found.validToMs - clock.now()
      remaining.observe(leftMs / 1000)
      return leftMs < 0 ? expired : found.result
    },
  }
}

function read({ raw }: PeerCertificate): Known {
  const certificate = new X509Certificate(raw)
  const validToMs = Date.parse(certificate.validTo)
  const found = userOfCertificate(certificate.raw)
  // As upstream: a certificate without a common name identifies no user.
  if (!found) return { result: undefined, validToMs }
  if (typeof found === 'string') return { result: { decision: 'rejected', reason: found }, validToMs }
  const { name, uid, groups } = found
  const extra = { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${certificate.fingerprint256.replaceAll(':', '').toLowerCase()}`] }
  const user: UserInfo = { name, ...(uid ? { uid } : {}), groups: [...new Set([...groups, 'system:authenticated'])], extra }
  return { result: { decision: 'authenticated', user }, validToMs }
}
