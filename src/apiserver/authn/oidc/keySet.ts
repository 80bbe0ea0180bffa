/**
 * The keys of an issuer (L3): fetched for the first token, cached, and fetched again when no cached key fits a token, which detects key rotation.
 * Concurrent checks share one request. Upstream: go-oidc/jwks.go.
 */
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { keyIdOf, peekHeader, verifySignature } from '../../tokens/jwt.ts'
import type { TokenAlgorithm, VerificationKey } from '../../tokens/keys.ts'
import type { HttpGet } from './httpGet.ts'

export interface KeySet {
  /** The claims of a token that one of the keys signed. @throws Error when none did, or the keys cannot be fetched */
  verify(token: string): Promise<Record<string, unknown>>
}

/** Called after each fetch with the served set, or undefined on failure. */
export type FetchObserver = (served: string | undefined) => void

type IssuerKey = Omit<VerificationKey, 'algorithm'>

const noKey = 'failed to verify id token signature'

export function remoteKeySet(url: string, get: HttpGet, observe: FetchObserver): KeySet {
  let known: readonly IssuerKey[] = []
  let pending: Promise<readonly IssuerKey[]> | undefined
  const fetchKeys = async () => {
    try {
      const { status, statusText, text } = await get(url).catch((error: Error) => {
        throw new Error(`oidc: get keys failed ${error.message}`)
      })
      if (status !== 200) throw new Error(`oidc: get keys failed: ${statusText} ${text}`)
      known = readKeys(text)
      observe(text)
      return known
    } catch (error) {
      observe(undefined)
      throw error
    } finally {
      pending = undefined
    }
  }
  return {
    async verify(token) {
      const claims = verifiedBy(known, token)
      if (claims) return claims
      pending ??= fetchKeys()
      const fresh = await pending.catch((error: Error) => {
        throw new Error(`fetching keys ${error.message}`)
      })
      const late = verifiedBy(fresh, token)
      if (!late) throw new Error(noKey)
      return late
    },
  }
}

function readKeys(text: string): IssuerKey[] {
  let keys: unknown
  try {
    keys = (JSON.parse(text) as { readonly keys?: unknown }).keys
  } catch (error) {
    throw new Error(`oidc: failed to decode keys: ${(error as Error).message} ${text}`)
  }
  return Array.isArray(keys) ? keys.flatMap(readKey) : []
}

/** Skips keys of unsupported types. */
function readKey(key: JsonWebKey & { readonly kid?: unknown }): IssuerKey[] {
  try {
    // A private or shared key that is served by mistake verifies nothing.
    if (key.kty !== 'RSA' && key.kty !== 'EC') return []
    return [{ id: typeof key.kid === 'string' ? key.kid : '', publicKey: createPublicKey({ key, format: 'jwk' }) }]
  } catch {
    return []
  }
}

const curves: Readonly<Record<string, string>> = { ES256: 'prime256v1', ES384: 'secp384r1', ES512: 'secp521r1' }

/** The caller has checked that the token's algorithm is accepted; only keys of the algorithm's type are tried. */
function verifiedBy(keys: readonly IssuerKey[], token: string): Record<string, unknown> | undefined {
  const algorithm = peekHeader(token)?.alg as TokenAlgorithm
  const keyId = keyIdOf(token)
  const candidates = keys.filter(
    ({ id, publicKey }) =>
      (keyId === undefined || id === keyId) &&
      (algorithm.startsWith('ES')
        ? publicKey.asymmetricKeyType === 'ec' && publicKey.asymmetricKeyDetails?.namedCurve === curves[algorithm]
        : publicKey.asymmetricKeyType === 'rsa'),
  )
  return candidates.length > 0
    ? verifySignature(
        token,
        candidates.map((key) => ({ ...key, id: keyId ?? key.id, algorithm })),
      )
    : undefined
}
