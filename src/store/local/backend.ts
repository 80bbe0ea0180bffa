/**
 * What a driver adds to the shared core (L2): durability. The core (mvccStore.ts) keeps the index, evaluates transactions, and serves watches;
 * a backend remembers changes in order and gives back old values.
 */
import type { AuthChange, AuthEntry, LeaseId, Revision } from '../store.ts'
import type { Version } from './mvcc/keyHistory.ts'

export type BackendChange =
  /** All changes of one revision: on disk wholly or not at all. */
  | { readonly type: 'revision'; readonly revision: Revision; readonly versions: readonly Version[] }
  | { readonly type: 'grantLease'; readonly id: LeaseId; readonly ttlSeconds: number }
  | { readonly type: 'revokeLease'; readonly id: LeaseId }
  | { readonly type: 'compact'; readonly revision: Revision }
  /** All of them are on disk or none. */
  | { readonly type: 'auth'; readonly changes: readonly AuthChange[] }

export interface BackendState {
  /** In revision order, without values unless the backend keeps them in memory. */
  readonly versions: Iterable<Version>
  readonly leases: readonly { readonly id: LeaseId; readonly ttlSeconds: number }[]
  readonly compactRevision: Revision
  readonly auth: readonly AuthEntry[]
}

export interface Backend {
  /** Waits one turn so that concurrent writes share one group, for a backend that writes each group at once. Absent: no wait. */
  gather?(): Promise<void>
  /** Resolves when the changes are durable, in order; after a crash a prefix of everything appended is there. Rejects having written nothing. */
  append(changes: readonly BackendChange[]): Promise<void>
  /** Removes compacted versions; in the given order, so that a crash never leaves a value whose tombstone is gone. */
  forget(versions: readonly Version[]): Promise<void>
  /** The value that the version was written with; undefined when it was forgotten. Absent: values stay in memory. */
  load?(version: Version): Uint8Array | undefined
  /**
   * Changes of the revisions from `first` to `last` with their values, in order: those of at least one revision, and some hundred kilobytes. Empty: there are none.
   * Absent: values stay in memory.
   */
  read?(first: Revision, last: Revision): readonly Version[]
  /** Resolves when read() finds everything that was appended before. */
  settle?(): Promise<void>
  /** Gives unused space back to the file system. Called while nothing is appended or forgotten. */
  defragment?(): Promise<void>
  /** Bytes the file takes; absent: what the core counts. */
  totalBytes?(): number
  close(): Promise<void>
}
