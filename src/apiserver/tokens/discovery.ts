/** What others need to verify our tokens (L3): the OpenID discovery document and the key set. Upstream: pkg/serviceaccount/openidmetadata.go, pkg/routes/openidmetadata.go. */
import type { Answer } from '../answer.ts'
import type { ServerRequest } from '../request.ts'
import type { VerificationKey } from './keys.ts'

const discoveryPath = '/.well-known/openid-configuration'
const keySetPath = '/openid/v1/jwks'
const headers = { 'cache-control': 'public, max-age=3600' }

/**
 * Serves both, for everybody who may get them.
 * @param keySetUrl where the key set is served, as clients reach it; absent: below the issuer
 */
export function tokenDocuments(
  issuer: string,
  keySetUrl: string | undefined,
  keys: readonly VerificationKey[],
): (request: ServerRequest) => Answer | undefined {
  if (!isIssuerUrl(issuer)) return () => undefined
  const documents: Readonly<Record<string, Answer>> = {
    [discoveryPath]: bytes('application/json', discoveryDocument(issuer, keySetUrl ?? `${issuer.replace(/\/$/, '')}${keySetPath}`, keys)),
    [keySetPath]: bytes('application/jwk-set+json', keySet(keys)),
  }
  return ({ path }) => (Object.hasOwn(documents, path) ? documents[path] : undefined)
}

function bytes(contentType: string, value: object): Answer {
  return { type: 'bytes', status: 200, contentType, bytes: Buffer.from(JSON.stringify(value)), headers }
}

/** OpenID allows no other: an issuer that is just a name has no documents. */
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

function keySet(keys: readonly VerificationKey[]): object {
  return { keys: keys.map(({ id, algorithm, publicKey }) => ({ use: 'sig', ...publicKey.export({ format: 'jwk' }), kid: id, alg: algorithm })) }
}
