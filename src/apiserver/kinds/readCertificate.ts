/** Reads the certificate of a PEM block (L3). Node's own reader takes PEM inside of a block too, which Go's refuses. */
import { X509Certificate } from 'node:crypto'
import { looksLikeCertificate } from '#api/kinds/certificates/pkcs10'

/** Undefined when the bytes are no DER certificate. */
export function readCertificate(der: Uint8Array): X509Certificate | undefined {
  if (!looksLikeCertificate(der)) return undefined
  try {
    return new X509Certificate(der)
  } catch {
    return undefined
  }
}
