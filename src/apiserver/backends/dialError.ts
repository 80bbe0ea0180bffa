/**
 * Words the error of a failed connection to a backend as Go's net and tls packages do (L3), because the texts appear in conditions and answers that
 * people search for.
 */
import { bareMap } from '#base/bareMap'
import { weakSignature } from '../core/serverTrust.ts'
import { authority, type Backend } from './backend.ts'

const systemErrors: Readonly<Record<string, string>> = bareMap({
  ECONNREFUSED: 'connect: connection refused',
  EHOSTUNREACH: 'connect: no route to host',
  ENETUNREACH: 'connect: network is unreachable',
  EACCES: 'connect: permission denied',
  EADDRNOTAVAIL: 'connect: cannot assign requested address',
  ETIMEDOUT: 'i/o timeout',
})

const unknownAuthority = 'certificate signed by unknown authority'

const certificateErrors: Readonly<Record<string, string>> = bareMap({
  DEPTH_ZERO_SELF_SIGNED_CERT: unknownAuthority,
  SELF_SIGNED_CERT_IN_CHAIN: unknownAuthority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownAuthority,
  CERT_SIGNATURE_FAILURE: unknownAuthority,
  CERT_HAS_EXPIRED: 'certificate has expired or is not yet valid',
  CERT_NOT_YET_VALID: 'certificate has expired or is not yet valid',
  INVALID_PURPOSE: 'certificate specifies an incompatible key usage',
})

export function dialErrorText(error: unknown, backend: Pick<Backend, 'host' | 'port'>): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  const address = authority(backend)
  const system = systemErrors[code]
  if (system) return `dial tcp ${address}: ${system}`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `dial tcp: lookup ${backend.host}: no such host`
  const certificate = message === weakSignature ? unknownAuthority : certificateErrors[code]
  if (certificate) return `tls: failed to verify certificate: x509: ${certificate}`
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `tls: failed to verify certificate: x509: ${message}`
  // The connection was there and ended before an answer.
  if (code === 'ECONNRESET' || code === 'EPIPE') return message.includes('hang up') ? 'EOF' : `read tcp ${address}: read: connection reset by peer`
  return message
}
