/** The documents with which others verify our tokens (L3): OpenID discovery and the key set. Upstream: pkg/serviceaccount/openidmetadata.go, pkg/routes/openidmetadata.go. */
import type { Answer } from '../core/answer.ts'
import type { Page } from '../core/page.ts'
import type { KeySet } from './keySet.ts'
import type { VerificationKey } from './keys.ts'

const discoveryPath = '/.well-known/openid-configuration'
export const keySetPath = '/openid/v1/jwks'

/**
 * Serves both documents; authorization has decided before.
 * @param keySetUrl where the key set is served, as clients reach it; absent: below the issuer
 */
export function tokenDocuments(issuer: string, keySetUrl: string | undefined, keySet: KeySet): readonly Page[] {
  if (!isIssuerUrl(issuer)) return []
  const jwksUri = keySetUrl ?? `${issuer.replace(/\/$/, '')}${keySetPath}`
  let made: { readonly of: KeySet['keys']; readonly discovery: Buffer; readonly jwks: Buffer } | undefined
  const documents = () => {
    const { keys } = keySet
    if (made?.of === keys) return made
    const shown = keys.filter((key) => !key.isHidden)
    made = { of: keys, discovery: bytes(discoveryDocument(issuer, jwksUri, shown)), jwks: bytes(jwks(shown)) }
    return made
  }
  const answer = (contentType: string, body: Buffer): Answer => {
    return { type: 'bytes', status: 200, contentType, bytes: body, headers: { 'cache-control': `public, max-age=${keySet.maxAgeSeconds}` } }
  }
  return [
    { prefix: discoveryPath, handle: ({ path }) => (path === discoveryPath ? answer('application/json', documents().discovery) : undefined) },
    { prefix: keySetPath, handle: ({ path }) => (path === keySetPath ? answer('application/jwk-set+json', documents().jwks) : undefined) },
  ]
}

const bytes = (value: object) => Buffer.from(JSON.stringify(value))

/** OpenID requires an https URL: an issuer that is only a name has no documents. */
function isIssuerUrl(issuer: string): boolean {
  return URL.canParse(issuer) && new URL(issuer).protocol === 'https:' && !/[?#]/.test(issuer)
}

function discoveryDocument(issuer: string, keySetUrl: string, keys: readonly VerificationKey[]): object {
  return {
    issuer,
    jwks_uri: keySetUrl,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...new Set(keys.map((key) => key.algorithm))].sort(),
  }
}

function jwks(keys: readonly VerificationKey[]): object {
  return { keys: keys.map(({ id, algorithm, publicKey }) => ({ use: 'sig', ...publicKey.export({ format: 'jwk' }), kid: id, alg: algorithm })) }
}
