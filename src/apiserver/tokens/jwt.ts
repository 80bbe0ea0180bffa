/** JSON Web Tokens (L3): verified only with the caller's keys, each with its own algorithm. */
import { constants, sign, verify } from 'node:crypto'
import type { SigningKey, TokenAlgorithm, VerificationKey } from './keys.ts'

/** The claims of a service account's token. Upstream: pkg/serviceaccount/claims.go. */
export interface TokenClaims {
  readonly aud: readonly string[]
  /** Seconds since the epoch. */
  readonly exp: number
  readonly iat: number
  readonly nbf: number
  readonly iss: string
  readonly jti: string
  readonly sub: string
  readonly 'kubernetes.io': PrivateClaims
}

export interface PrivateClaims {
  readonly namespace: string
  readonly serviceaccount: BoundReference
  readonly pod?: BoundReference | undefined
  readonly secret?: BoundReference | undefined
  readonly node?: BoundReference | undefined
  /** Extended tokens give a warning after this time, in seconds since the epoch. */
  readonly warnafter?: number | undefined
}

export interface BoundReference {
  readonly name: string
  readonly uid: string
}

const hashOf = (algorithm: TokenAlgorithm) => `sha${algorithm.slice(2)}`

/** Elliptic signatures are two numbers side by side; PSS salts are as long as the hash. */
function formOf(algorithm: TokenAlgorithm): object {
  if (algorithm.startsWith('ES')) return { dsaEncoding: 'ieee-p1363' }
  return algorithm.startsWith('PS') ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST } : {}
}

export function signToken(claims: object, key: SigningKey): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${encode({ alg: key.algorithm, kid: key.id })}.${encode(claims)}`
  const signature = sign(hashOf(key.algorithm), Buffer.from(signed), { key: key.privateKey, ...formOf(key.algorithm) })
  return `${signed}.${signature.toString('base64url')}`
}

/** The token's claims without any check; undefined when it is no JSON Web Token. */
export function peekClaims(token: string): Record<string, unknown> | undefined {
  return jsonPart(token.split('.'), 1)
}

/**
 * The claims of a token that one of the keys signed; undefined otherwise. The algorithm is the key's, never the token's choice:
 * `none`, or a public key used as a shared secret, cannot pass. The caller checks audience and times.
 */
export function verifySignature(token: string, keys: readonly VerificationKey[]): Record<string, unknown> | undefined {
  const parts = token.split('.')
  const header = jsonPart(parts, 0)
  const signature = decodeBase64Url(parts[2] ?? '')
  if (!header || !signature || parts.length !== 3 || header.crit !== undefined) return undefined
  const signed = Buffer.from(`${parts[0]}.${parts[1]}`)
  const fits = (key: VerificationKey) =>
    key.algorithm === header.alg &&
    (header.kid === undefined || header.kid === key.id) &&
    verify(hashOf(key.algorithm), signed, { key: key.publicKey, ...formOf(key.algorithm) }, signature)
  return keys.some(fits) ? jsonPart(parts, 1) : undefined
}

/** The token's header without any check; undefined when it is no JSON Web Token. */
export function peekHeader(token: string): Record<string, unknown> | undefined {
  return jsonPart(token.split('.'), 0)
}

/** The key id in the token's header; undefined when there is none. */
export function keyIdOf(token: string): string | undefined {
  const kid = peekHeader(token)?.kid
  return typeof kid === 'string' && kid !== '' ? kid : undefined
}

function jsonPart(parts: readonly string[], index: number): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(String(decodeBase64Url(parts[index] ?? '')))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** Buffer.from skips invalid characters, so one signature would have many spellings. Undefined: the text is not base64url without padding. */
export function decodeBase64Url(text: string): Buffer | undefined {
  return /^[A-Za-z0-9_-]*$/.test(text) && text.length % 4 !== 1 ? Buffer.from(text, 'base64url') : undefined
}
