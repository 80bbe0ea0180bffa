/** The keys that verify service account tokens, as those see them who verify and who publish (L3). Upstream: pkg/serviceaccount/jwt.go, PublicKeysGetter. */
import type { VerificationKey } from './keys.ts'

export interface KeySet {
  /** A new array whenever a key has changed. */
  readonly keys: readonly VerificationKey[]
  /** How long others may keep what is published. */
  readonly maxAgeSeconds: number
  /** Fetches the keys again; concurrent calls share one fetch. Absent: the keys never change. A failure keeps the current keys. */
  refresh?(): Promise<void>
}

/** Keys that never change. */
export function staticKeys(keys: readonly VerificationKey[]): KeySet {
  return { keys, maxAgeSeconds: 3600 }
}

/** Those that a token of this key id may be signed with; without one, all. */
export function keysFor({ keys }: KeySet, keyId: string | undefined): readonly VerificationKey[] {
  return keyId === undefined ? keys : keys.filter(({ id }) => id === keyId)
}
