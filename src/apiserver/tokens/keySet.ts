/** The interface of the keys that verify service account tokens, for verification and publication (L3). Upstream: pkg/serviceaccount/jwt.go, PublicKeysGetter. */
import type { VerificationKey } from './keys.ts'

export interface KeySet {
  /** A new array whenever a key has changed. */
  readonly keys: readonly VerificationKey[]
  /** The max-age of the published key set. */
  readonly maxAgeSeconds: number
  /** Fetches the keys again; concurrent calls share one fetch. Absent: the keys never change. A failure keeps the current keys. */
  refresh?(): Promise<void>
}

/** Keys that never change. */
export function staticKeys(keys: readonly VerificationKey[]): KeySet {
  return { keys, maxAgeSeconds: 3600 }
}

/** The keys with this id; without an id, all. */
export function keysFor({ keys }: KeySet, keyId: string | undefined): readonly VerificationKey[] {
  return keyId === undefined ? keys : keys.filter(({ id }) => id === keyId)
}
