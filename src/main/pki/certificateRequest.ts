/**
 * Asks a cluster for a certificate (L5): a new key, a CertificateSigningRequest for it, and the wait until it is approved and signed.
 * Upstream: client-go/util/certificate/csr/csr.go, kubelet/certificate/bootstrap (v1.36).
 */
import { isIP } from 'node:net'
import type { CertificateSigningRequest } from '#api/gen/types/certificates.v1'
import type { Clock } from '#base/clock'
import { certificateSigningRequests } from '#client/builtIn'
import type { Client } from '#client/client'
import { type KeyPair, newKey, x509Library } from './certificates.ts'

export interface WantedCertificate {
  readonly commonName: string
  readonly organizations: readonly string[]
  readonly signerName: string
  readonly usage: 'client auth' | 'server auth'
  /** DNS names and addresses. */
  readonly hosts?: readonly string[] | undefined
}

const pollMs = 1000
const waitMs = 15 * 60_000

/** @throws Error when it is denied, fails, or is not signed within 15 minutes */
export async function requestCertificate(client: Client, wanted: WantedCertificate, clock: Clock, signal: AbortSignal): Promise<KeyPair> {
  const { key, request } = await makeRequest(wanted)
  const requests = client.of<CertificateSigningRequest>(certificateSigningRequests)
  const made = await requests.create({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { generateName: 'csr-' },
    spec: { request: Buffer.from(request).toString('base64'), signerName: wanted.signerName, usages: ['digital signature', wanted.usage] },
  } as CertificateSigningRequest)
  const { name = '' } = made.metadata
  const untilMs = clock.now() + waitMs
  for (;;) {
    const { status } = await requests.get({ name })
    const refused = status?.conditions?.find(({ type }) => type === 'Denied' || type === 'Failed')
    if (refused) {
      const what = refused.type === 'Denied' ? 'is denied' : 'failed'
      throw new Error(`certificate signing request ${name} ${what}, reason: ${refused.reason ?? ''}, message: ${refused.message ?? ''}`)
    }
    if (status?.certificate) return { cert: Buffer.from(status.certificate, 'base64').toString(), key }
    if (clock.now() > untilMs)
      throw new Error(
        `certificate signing request ${name} was not signed within ${waitMs / 60_000} minutes: approve it with kubectl certificate approve ${name}`,
      )
    await clock.sleep(pollMs, signal)
  }
}

async function makeRequest({ commonName, organizations, hosts = [] }: WantedCertificate): Promise<{ key: string; request: string }> {
  const x509 = await x509Library()
  const { keys, pem, algorithm } = await newKey()
  const names = hosts.map((value) => ({ type: isIP(value) ? ('ip' as const) : ('dns' as const), value }))
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [...organizations.map((organization) => ({ O: [organization] })), { CN: [commonName] }],
    keys,
    signingAlgorithm: algorithm,
    extensions: names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : [],
  })
  return { key: pem, request: request.toString('pem') }
}
