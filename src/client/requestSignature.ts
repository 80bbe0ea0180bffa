/**
 * Checks that a certificate request is signed with the key it is for (L2). The API server asks when a request is created, the signer before it signs.
 * Keys are of the kinds and sizes that upstream can check. Upstream: Go's crypto/x509 CertificateRequest.CheckSignature.
 */
import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { CertificateRequest } from '#api/kinds/certificates/pkcs10'

interface SignatureAlgorithm {
  readonly digest: string | null
  readonly keyType: string
  /** Go's words for a signature that does not fit. */
  readonly fault: string
}

const rsa = { keyType: 'rsa', fault: 'crypto/rsa: verification error' }
const ecdsa = { keyType: 'ec', fault: 'x509: ECDSA verification failure' }
/** By object identifier. */
const algorithms: ReadonlyMap<string, SignatureAlgorithm> = new Map([
  ['1.2.840.113549.1.1.5', { digest: 'sha1', ...rsa }],
  ['1.2.840.113549.1.1.11', { digest: 'sha256', ...rsa }],
  ['1.2.840.113549.1.1.12', { digest: 'sha384', ...rsa }],
  ['1.2.840.113549.1.1.13', { digest: 'sha512', ...rsa }],
  ['1.2.840.10045.4.1', { digest: 'sha1', ...ecdsa }],
  ['1.2.840.10045.4.3.2', { digest: 'sha256', ...ecdsa }],
  ['1.2.840.10045.4.3.3', { digest: 'sha384', ...ecdsa }],
  ['1.2.840.10045.4.3.4', { digest: 'sha512', ...ecdsa }],
  ['1.3.101.112', { digest: null, keyType: 'ed25519', fault: 'x509: Ed25519 verification failure' }],
])

const curves: readonly (string | undefined)[] = ['secp224r1', 'prime256v1', 'secp384r1', 'secp521r1']
/** In bits: upstream calls fewer insecure; more take OpenSSL long, and it refuses them. */
const rsaSize = { min: 1024, max: 16_384 }
/** DER of a key of the largest size that is accepted. */
const maxKeyBytes = 4096

/** Undefined when the signature is right. */
export function signatureFault({ signed, publicKeyInfo, algorithm, signature }: CertificateRequest): string | undefined {
  const known = algorithms.get(algorithm)
  if (!known) return 'x509: cannot verify signature: algorithm unimplemented'
  if (publicKeyInfo.length > maxKeyBytes) return 'x509: failed to parse public key'
  try {
    const key = createPublicKey({ key: Buffer.from(publicKeyInfo), format: 'der', type: 'spki' })
    return keyFault(key, known) ?? (verify(known.digest, signed, key, signature) ? undefined : known.fault)
  } catch {
    return 'x509: failed to parse public key'
  }
}

function keyFault({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject, { keyType }: SignatureAlgorithm): string | undefined {
  if (asymmetricKeyType !== keyType) return `x509: signature algorithm specifies a key of type ${keyType}, but have public key of type ${asymmetricKeyType}`
  if (keyType === 'ec' && !curves.includes(asymmetricKeyDetails.namedCurve)) return 'x509: unsupported elliptic curve'
  if (keyType !== 'rsa') return undefined
  const { modulusLength = 0 } = asymmetricKeyDetails
  if (modulusLength < rsaSize.min) return `crypto/rsa: ${modulusLength}-bit keys are insecure`
  return modulusLength > rsaSize.max ? `crypto/rsa: ${modulusLength}-bit keys are not supported` : undefined
}
