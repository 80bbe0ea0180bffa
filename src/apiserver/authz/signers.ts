/** Whether a user may act for a signer of certificates (L3). Upstream: pkg/certauthorization (v1.36). */
import type { UserInfo } from '../core/request.ts'
import type { Authorizer } from './authorizer.ts'
import { authorize } from './union.ts'

const about = { isResourceRequest: true, path: '', namespace: '', apiGroup: 'certificates.k8s.io', apiVersion: '*', resource: 'signers', subresource: '' }

/** Checks the permission for this signer, or for all signers of its domain. */
export async function mayForSigner(
  authorizers: readonly Authorizer[],
  user: UserInfo,
  verb: 'approve' | 'attest' | 'sign',
  signerName: string,
): Promise<boolean> {
  for (const name of [signerName, `${signerName.split('/')[0]}/*`]) {
    if ((await authorize(authorizers, { ...about, user, verb, name })).decision === 'allow') return true
  }
  return false
}
