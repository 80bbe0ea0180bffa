/**
 * Keys that sign and verify service account tokens (L3). Upstream: pkg/serviceaccount/jwt.go; key ids are the hash of the public key.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { bareMap } from '#base/bareMap'

/** Signature algorithms: our tokens use one of the first four, tokens of other issuers any. */
export type TokenAlgorithm = 'RS256' | 'ES256' | 'ES384' | 'ES512' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512'

export interface VerificationKey {
  readonly id: string
  readonly algorithm: TokenAlgorithm
  readonly publicKey: KeyObject
  /** Verifies, but is not published: no new token may be signed with it. */
  readonly isHidden?: boolean | undefined
}

export interface SigningKey extends VerificationKey {
  readonly privateKey: KeyObject
}

const curves: Readonly<Record<string, TokenAlgorithm>> = bareMap({ prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' })

/** @param pem a private key, RSA or elliptic. @throws Error for any other kind. */
export function signingKey(pem: string): SigningKey {
  const privateKey = createPrivateKey(pem)
  return { ...verificationKeyOf(createPublicKey(privateKey)), privateKey }
}

/** @param pem a public or private key, or a certificate. */
export function verificationKey(pem: string): VerificationKey {
  return verificationKeyOf(createPublicKey(pem))
}

const pemBlock = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g

/** Every key of a file: public or private keys and certificates, one after the other. @throws Error when there is none, or one of another kind */
export function verificationKeys(pem: string): VerificationKey[] {
  const blocks = [...pem.matchAll(pemBlock)].map(([block]) => block).filter((block) => !block.startsWith('-----BEGIN EC PARAMETERS'))
  if (blocks.length === 0) throw new Error('data does not contain any valid RSA or ECDSA public keys')
  return blocks.map(verificationKey)
}

/** @throws Error for a key that is neither RSA nor of one of the known curves */
export function verificationKeyOf(publicKey: KeyObject): VerificationKey {
  const id = createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url')
  const algorithm = publicKey.asymmetricKeyType === 'rsa' ? 'RS256' : curves[publicKey.asymmetricKeyDetails?.namedCurve ?? '']
  if (!algorithm) throw new Error(`a key of type ${publicKey.asymmetricKeyType} cannot sign service account tokens`)
  return { id, algorithm, publicKey }
}
