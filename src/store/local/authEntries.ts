/** The entries of etcd's buckets for users and roles (L2), as they are on the disk. Upstream: etcd server/storage/schema/auth*.go (v3.6). */
import type { AuthChange, AuthEntry } from '../store.ts'

export class AuthEntries {
  readonly #entries = new Map<string, AuthEntry>()

  all(): readonly AuthEntry[] {
    return [...this.#entries.values()]
  }

  apply(changes: readonly AuthChange[]): void {
    for (const { bucket, key, value } of changes) {
      if (value) this.#entries.set(nameOf({ bucket, key }), { bucket, key, value })
      else this.#entries.delete(nameOf({ bucket, key }))
    }
  }

  /** Whether a value becomes longer than it was. */
  grows(changes: readonly AuthChange[]): boolean {
    return changes.some((change) => (change.value?.length ?? 0) > (this.#entries.get(nameOf(change))?.value.length ?? 0))
  }
}

function nameOf({ bucket, key }: Omit<AuthEntry, 'value'>): string {
  return `${bucket}/${key}`
}
