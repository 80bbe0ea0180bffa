/**
 * Authenticates by client certificate (L3): the common name is the user, the organizations are the groups, and a subject may carry a uid.
 * TLS has verified the chain; the time is checked again, because a connection may outlive its certificate.
 * Upstream: apiserver/pkg/authentication/request/x509 (CommonNameUserConversion).
 */
import { X509Certificate } from 'node:crypto'
// Node's toLegacyObject() leaves the tls module half loaded when it is the first to need it.
import 'node:tls'
import type { Clock } from '#base/clock'
import { type Metrics, noMetrics } from '#base/metrics'
import type { PeerCertificate, UserInfo } from '../request.ts'
import type { AuthenticationResult, Authenticator } from './authenticator.ts'
import { subjectValues } from './certificateSubject.ts'

interface Known {
  readonly result: AuthenticationResult
  readonly validToMs: number
}

/** How long certificates that are used have left. Upstream: apiserver_client_certificate_expiration_seconds. */
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

/** The attribute of a subject that holds the user's uid. Upstream: apimachinery's asn1.X509UID. */
const uidAttribute = '1.3.6.1.4.1.57683.2'

function read({ raw }: PeerCertificate): Known {
  const certificate = new X509Certificate(raw)
  const validToMs = Date.parse(certificate.validTo)
  // Node's types say string, but a repeated attribute is an array.
  const subject = certificate.toLegacyObject().subject as unknown as Readonly<Record<string, string | readonly string[] | undefined>>
  const name = [subject.CN ?? ''].flat().at(-1) ?? ''
  // As upstream: a certificate without a common name identifies nobody.
  if (name === '') return { result: undefined, validToMs }
  const uids = subjectValues(certificate.raw, uidAttribute)
  const fault = uids.length > 1 ? `expected 1 UID, but found multiple: [${uids.join(' ')}]` : uids[0] === '' ? 'UID cannot be an empty string' : undefined
  if (fault) return { result: { decision: 'rejected', reason: fault }, validToMs }
  const groups = [...[subject.O ?? []].flat(), 'system:authenticated']
  const extra = { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${certificate.fingerprint256.replaceAll(':', '').toLowerCase()}`] }
  const user: UserInfo = { name, ...(uids[0] ? { uid: uids[0] } : {}), groups: [...new Set(groups)], extra }
  return { result: { decision: 'authenticated', user }, validToMs }
}
