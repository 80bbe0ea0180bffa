/**
 * Tokens for secrets of type service-account-token (L3): they name the secret and the account, and do not expire.
 * Upstream: LegacyClaims of pkg/serviceaccount/legacy.go (v1.36).
 */
import type { Secret, ServiceAccount } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { signToken } from '../tokens/jwt.ts'
import { signingKey } from '../tokens/keys.ts'
import { claimPrefix, legacyIssuer } from './legacyClaims.ts'

/** @param pem the private key of service account tokens */
export function secretTokens(pem: string): (account: Frozen<ServiceAccount>, secret: Frozen<Secret>) => string {
  const key = signingKey(pem)
  return ({ metadata: { namespace, name, uid } }, secret) =>
    signToken(
      {
        iss: legacyIssuer,
        [`${claimPrefix}namespace`]: namespace,
        [`${claimPrefix}secret.name`]: secret.metadata.name,
        [`${claimPrefix}service-account.name`]: name,
        [`${claimPrefix}service-account.uid`]: uid,
        sub: `system:serviceaccount:${namespace}:${name}`,
      },
      key,
    )
}
