/** Certificates of authorities from ConfigMaps (L3). What a tenant writes there is read by each handshake with a backend, so sizes are bounded. */
import { X509Certificate } from 'node:crypto'
import { messageOf } from '#base/messageOf'

/** Characters. All authorities that browsers know have twice as many. */
export const maxBundle = 128 * 1024
const block = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** @param text as it is in the ConfigMap @returns only the certificates of it, as PEM */
export function readAuthorities(text: string | undefined): { readonly pem: string } | { readonly problem: string } {
  if (text === undefined) return { problem: 'it has no ca.crt' }
  if (text.length > maxBundle) return { problem: `its ca.crt has more than ${maxBundle} characters` }
  const found = text.match(block) ?? []
  if (found.length === 0) return { problem: 'its ca.crt holds no certificate' }
  try {
    for (const one of found) new X509Certificate(one)
  } catch (error) {
    return { problem: `its ca.crt holds a certificate that cannot be read: ${messageOf(error)}` }
  }
  return { pem: found.join('\n') }
}
