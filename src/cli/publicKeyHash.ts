/** The hash by which people pin a certificate authority (L4): a renewed certificate with the same key has the same. RFC 7469, section 2.4. */
import { createHash, X509Certificate } from 'node:crypto'

/** SHA-256 of the SubjectPublicKeyInfo, in lower-case hexadecimal. @param certificate PEM @throws Error for another text */
export function publicKeyHash(certificate: string): string {
  return createHash('sha256')
    .update(new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
}
