/** A signer of pods' certificates, for tests: issues what a PodCertificateRequest asks for. */
import type { PodCertificateRequest } from '#api/gen/types/certificates.v1beta1'
import { parseRequestDer } from '#api/kinds/certificates/pkcs10'
import type { Frozen } from '#api/machinery/meta'
import { formatTime } from '#base/time'
import { type CertificateAuthority, signRequest } from '#controllers/certificates/x509'

const minuteMs = 60_000

/** The status of a request that is issued for an hour. */
export async function issuedStatus(
  { spec }: Frozen<PodCertificateRequest>,
  authority: CertificateAuthority,
  nowMs: number,
): Promise<PodCertificateRequest['status']> {
  const parsed = parseRequestDer(Buffer.from(spec.stubPKCS10Request, 'base64'))
  if (typeof parsed === 'string') throw new Error(parsed)
  const beginMs = Math.floor(nowMs / 1000) * 1000
  const named = { ...parsed, dnsNames: [`${spec.podName}.example.com`] }
  // The library starts certificates five minutes early, and lets those of a short life end in time.
  const signing = { usages: ['client auth', 'server auth', 'digital signature'], durationMs: 60 * minuteMs, nowMs: beginMs + 5 * minuteMs }
  const chain = Buffer.from(await signRequest(named, authority, signing), 'base64').toString()
  return {
    conditions: [{ type: 'Issued', status: 'True', reason: 'Signed', message: '', lastTransitionTime: formatTime(beginMs) }],
    certificateChain: chain,
    notBefore: formatTime(beginMs),
    beginRefreshAt: formatTime(beginMs + 30 * minuteMs),
    notAfter: formatTime(beginMs + 65 * minuteMs),
  }
}
