/** Secrets that hold a service account's token (L3). Pure. Upstream: pkg/serviceaccount/util.go (v1.36). */
import type { Secret, ServiceAccount } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

export const accountNameAnnotation = 'kubernetes.io/service-account.name'
export const accountUidAnnotation = 'kubernetes.io/service-account.uid'

export function isTokenSecret(secret: Frozen<Secret>): boolean {
  return secret.type === 'kubernetes.io/service-account-token'
}

/** Whether the secret is this account's: by name, and by uid if the secret has one. */
export function isTokenOf({ metadata, type }: Frozen<Secret>, account: Frozen<ServiceAccount>): boolean {
  if (type !== 'kubernetes.io/service-account-token' || metadata.namespace !== account.metadata.namespace) return false
  const uid = metadata.annotations?.[accountUidAnnotation] ?? ''
  return metadata.annotations?.[accountNameAnnotation] === account.metadata.name && (uid === '' || uid === account.metadata.uid)
}
