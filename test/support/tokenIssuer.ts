/** An issuer of ID tokens for tests: keys of any kind, tokens as good or as bad as wanted, and the documents that make them verifiable. */
import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { signToken } from '#apiserver/tokens/jwt'
import type { TokenAlgorithm } from '#apiserver/tokens/keys'
import type { CannedAnswer } from './cannedServer.ts'

export interface IssuerKey {
  readonly id: string
  readonly algorithm: TokenAlgorithm
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

const curves: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }

export function issuerKey(id: string, algorithm: TokenAlgorithm = 'RS256'): IssuerKey {
  const namedCurve = curves[algorithm]
  const { privateKey } = namedCurve ? generateKeyPairSync('ec', { namedCurve }) : generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { id, algorithm, privateKey, publicKey: createPublicKey(privateKey) }
}

/** What the issuer's server answers so that tokens of these keys are good. */
export function issuerDocuments(url: string, keys: readonly IssuerKey[]): Record<string, CannedAnswer> {
  const jwks = { keys: keys.map(({ id, publicKey }) => ({ ...publicKey.export({ format: 'jwk' }), use: 'sig', kid: id })) }
  return {
    '/.well-known/openid-configuration': { text: JSON.stringify({ issuer: url, jwks_uri: `${url}/keys` }) },
    '/keys': { text: JSON.stringify(jwks) },
  }
}

export const idToken = (key: IssuerKey, claims: object): string => signToken(claims, key)

/** A token with any algorithm in its header, whatever the signature is. */
export function forgedToken(header: object, claims: object, signature: (signed: string) => string): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${encode(header)}.${encode(claims)}`
  return `${signed}.${signature(signed)}`
}

/** Signed with the public key as if that were a secret. */
export function confusedToken({ id, publicKey }: IssuerKey, claims: object): string {
  const secret = publicKey.export({ type: 'spki', format: 'pem' })
  return forgedToken({ alg: 'HS256', kid: id }, claims, (signed) => createHmac('sha256', secret).update(signed).digest('base64url'))
}
