/**
 * Keys that sign and verify service account tokens (L3). Upstream: pkg/serviceaccount/jwt.go; key ids are the hash of the public key.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'

export type TokenAlgorithm = 'RS256' | 'ES256' | 'ES384' | 'ES512'

export interface VerificationKey {
  readonly id: string
  readonly algorithm: TokenAlgorithm
  readonly publicKey: KeyObject
}

export interface SigningKey extends VerificationKey {
  readonly privateKey: KeyObject
}

const curves: Readonly<Record<string, TokenAlgorithm>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }

/** @param pem a private key, RSA or elliptic. @throws Error for any other kind. */
export function signingKey(pem: string): SigningKey {
  const privateKey = createPrivateKey(pem)
  return { ...keyOf(createPublicKey(privateKey)), privateKey }
}

/** @param pem a public or private key, or a certificate. */
export function verificationKey(pem: string): VerificationKey {
  return keyOf(createPublicKey(pem))
}

function keyOf(publicKey: KeyObject): VerificationKey {
  const id = createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url')
  const algorithm = publicKey.asymmetricKeyType === 'rsa' ? 'RS256' : curves[publicKey.asymmetricKeyDetails?.namedCurve ?? '']
  if (!algorithm) throw new Error(`a key of type ${publicKey.asymmetricKeyType} cannot sign service account tokens`)
  return { id, algorithm, publicKey }
}
