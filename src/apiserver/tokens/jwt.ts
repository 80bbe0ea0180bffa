/** JSON Web Tokens as service accounts use them (L3): signed by one of our keys with that key's own algorithm, nothing else. */
import { sign, verify } from 'node:crypto'
import type { SigningKey, VerificationKey } from './keys.ts'

/** What a service account's token says. Upstream: pkg/serviceaccount/claims.go. */
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
  /** Tokens of a longer life warn after this time, in seconds since the epoch. */
  readonly warnafter?: number | undefined
}

export interface BoundReference {
  readonly name: string
  readonly uid: string
}

const hashes = { RS256: 'sha256', ES256: 'sha256', ES384: 'sha384', ES512: 'sha512' } as const

export function signToken(claims: TokenClaims, key: SigningKey): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${encode({ alg: key.algorithm, kid: key.id })}.${encode(claims)}`
  const signature = sign(hashes[key.algorithm], Buffer.from(signed), { key: key.privateKey, dsaEncoding: 'ieee-p1363' })
  return `${signed}.${signature.toString('base64url')}`
}

/** The token's claims without any check; undefined when it is no JSON Web Token. */
export function peekClaims(token: string): Record<string, unknown> | undefined {
  return jsonPart(token.split('.'), 1)
}

/**
 * The claims of a token that one of the keys signed; undefined otherwise. The algorithm is the key's, never the token's choice:
 * `none`, or a public key used as a shared secret, cannot pass. Audience and times are the caller's to check.
 */
export function verifySignature(token: string, keys: readonly VerificationKey[]): Record<string, unknown> | undefined {
  const parts = token.split('.')
  const header = jsonPart(parts, 0)
  if (!header || parts.length !== 3 || header.crit !== undefined) return undefined
  const signed = Buffer.from(`${parts[0]}.${parts[1]}`)
  const signature = Buffer.from(parts[2] as string, 'base64url')
  const fits = (key: VerificationKey) =>
    key.algorithm === header.alg &&
    (header.kid === undefined || header.kid === key.id) &&
    verify(hashes[key.algorithm], signed, { key: key.publicKey, dsaEncoding: 'ieee-p1363' }, signature)
  return keys.some(fits) ? jsonPart(parts, 1) : undefined
}

/** The id of the key that the token says it was signed with; undefined when it says none. */
export function keyIdOf(token: string): string | undefined {
  const kid = jsonPart(token.split('.'), 0)?.kid
  return typeof kid === 'string' && kid !== '' ? kid : undefined
}

function jsonPart(parts: readonly string[], index: number): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(parts[index] ?? '', 'base64url').toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
