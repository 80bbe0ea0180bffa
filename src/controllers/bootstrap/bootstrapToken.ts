/**
 * Reads the secret of a bootstrap token (L3). Pure. Upstream: k8s.io/cluster-bootstrap/util/secrets (v1.36).
 */
import type { Secret } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { parseTime } from '#base/time'

const namePrefix = 'bootstrap-token-'

export function isBootstrapToken({ type, metadata }: Frozen<Secret>): boolean {
  return type === 'bootstrap.kubernetes.io/token' && metadata.namespace === 'kube-system'
}

function textOf(secret: Frozen<Secret>, key: string): string {
  return Buffer.from(ownValue(secret.data, key) ?? '', 'base64').toString()
}

/** When the token ends; undefined: never. A time that cannot be read is past. */
export function tokenExpiryMs(secret: Frozen<Secret>): number | undefined {
  const text = textOf(secret, 'expiration')
  return text === '' ? undefined : (parseTime(text) ?? Number.NEGATIVE_INFINITY)
}

/** The token, if it is good and meant for signing. */
export function signingToken(secret: Frozen<Secret>, nowMs: number): { readonly id: string; readonly secret: string } | undefined {
  const { name = '', deletionTimestamp } = secret.metadata
  const id = textOf(secret, 'token-id')
  const value = textOf(secret, 'token-secret')
  const good =
    !deletionTimestamp &&
    /^[a-z0-9]{6}$/.test(id) &&
    name === `${namePrefix}${id}` &&
    value !== '' &&
    (tokenExpiryMs(secret) ?? Number.POSITIVE_INFINITY) > nowMs &&
    textOf(secret, 'usage-bootstrap-signing') === 'true'
  return good ? { id, secret: value } : undefined
}
