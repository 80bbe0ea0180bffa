/** What others need to verify our tokens (L3): the OpenID discovery document and the key set. Upstream: pkg/serviceaccount/openidmetadata.go. */
import type { VerificationKey } from './keys.ts'

export const discoveryPath = '/.well-known/openid-configuration'
export const keySetPath = '/openid/v1/jwks'

/** @param keySetUrl where the key set is served, as clients reach it. */
export function discoveryDocument(issuer: string, keySetUrl: string, keys: readonly VerificationKey[]): object {
  return {
    issuer,
    jwks_uri: keySetUrl,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...new Set(keys.map((key) => key.algorithm))].sort(),
  }
}

export function keySet(keys: readonly VerificationKey[]): object {
  return { keys: keys.map(({ id, algorithm, publicKey }) => ({ use: 'sig', ...publicKey.export({ format: 'jwk' }), kid: id, alg: algorithm })) }
}
