/**
 * Refuses certificate requests that are not signed with the key they are for (L3): the strategy, which is pure, has checked their form.
 * Upstream: pkg/apis/certificates/validation validateCSR (v1.36).
 */

import { createPublicKey, verify } from 'node:crypto'
import type { CertificateSigningRequest } from '#api/gen/types/certificates.v1'
import { type CertificateRequest, parseCertificateRequest } from '#api/kinds/certificates/pkcs10'
import { FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import { bareMap } from '#base/bareMap'
import { nothingReserved, type StorageHooks } from './storedResource.ts'

/** Object identifier → digest, and what Go says of a signature that does not fit. */
const rsa = 'crypto/rsa: verification error'
const ecdsa = 'x509: ECDSA verification failure'
const algorithms: Readonly<Record<string, { readonly digest: string | null; readonly fault: string }>> = bareMap({
  '1.2.840.113549.1.1.5': { digest: 'sha1', fault: rsa },
  '1.2.840.113549.1.1.11': { digest: 'sha256', fault: rsa },
  '1.2.840.113549.1.1.12': { digest: 'sha384', fault: rsa },
  '1.2.840.113549.1.1.13': { digest: 'sha512', fault: rsa },
  '1.2.840.10045.4.1': { digest: 'sha1', fault: ecdsa },
  '1.2.840.10045.4.3.2': { digest: 'sha256', fault: ecdsa },
  '1.2.840.10045.4.3.3': { digest: 'sha384', fault: ecdsa },
  '1.2.840.10045.4.3.4': { digest: 'sha512', fault: ecdsa },
  '1.3.101.112': { digest: null, fault: 'x509: Ed25519 verification failure' },
})

export const certificateRequestHooks: StorageHooks = {
  async beforeCreate(object) {
    const { spec, metadata } = object as unknown as CertificateSigningRequest
    const parsed = parseCertificateRequest(spec?.request ?? '')
    // Validation reports a form that is wrong.
    const fault = typeof parsed === 'string' ? undefined : signatureFault(parsed)
    if (!fault) return nothingReserved
    const errors = [fieldError.invalid(FieldPath.of('spec', 'request'), spec.request, fault)]
    throw invalid({ group: 'certificates.k8s.io', kind: 'CertificateSigningRequest' }, metadata.name ?? '', errors)
  },
}

/** Undefined when the signature is right. */
export function signatureFault({ signed, publicKeyInfo, algorithm, signature }: CertificateRequest): string | undefined {
  const known = algorithms[algorithm]
  if (!known) return 'x509: cannot verify signature: algorithm unimplemented'
  try {
    const key = createPublicKey({ key: Buffer.from(publicKeyInfo), format: 'der', type: 'spki' })
    return verify(known.digest, signed, key, signature) ? undefined : known.fault
  } catch {
    return 'x509: failed to parse public key'
  }
}
