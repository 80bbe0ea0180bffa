/**
 * The history of one key (L2, pure): its versions in revision order. Upstream: etcd's keyIndex with its generations (server/storage/mvcc/key_index.go);
 * here a generation is simply the stretch between two tombstones, so one array is enough.
 *
 * Worked example. put@2 put@4 delete@6 put@9:
 *   versions   2(v1)  4(v2)  6(tombstone)  9(v1)
 *   at 5 → 4   at 6, 7, 8 → tombstone, so absent   at 1 → nothing   at 9 and later → 9
 *   compact(4): 2 goes                                              → 4 6 9
 *   compact(6): 4 goes too; the deletion is the revision's own event → 6 9
 *   compact(7): the tombstone goes too: nothing before 7 is visible at 7 or later → 9
 * A version is garbage for compact(R) once something replaced it at or before R, and a tombstone once it is before R.
 */
import type { KeyValue, LeaseId, Revision } from '../../store.ts'

export interface Version {
  readonly key: string
  readonly modRevision: Revision
  /** Position among the changes of its revision. */
  readonly sub: number
  /** 0 for a tombstone. */
  readonly createRevision: Revision
  /** 1 at creation, +1 at each put; 0 for a tombstone. */
  readonly version: number
  readonly lease: LeaseId
  /** Length of key and value. */
  readonly bytes: number
  /** Absent when it must be loaded from the backend. */
  value: Uint8Array | undefined
}

export type KeyHistory = Version[]

export const noBytes = new Uint8Array(0)

export function isTombstone(version: Version): boolean {
  return version.version === 0
}

/** The newest version, tombstones included. */
export function newestOf(history: KeyHistory | undefined): Version | undefined {
  return history?.[history.length - 1]
}

/** The version that a reader at `revision` meets: a tombstone counts as nothing. */
export function versionAt(history: KeyHistory, revision: Revision): Version | undefined {
  const version = newestUpTo(history, revision)
  return version && !isTombstone(version) ? version : undefined
}

/** The newest version at or before a revision, tombstones included. */
export function newestUpTo(history: KeyHistory, revision: Revision): Version | undefined {
  return history[firstAfter(history, revision) - 1]
}

/** The live version that `version` replaced, if it is still known. */
export function versionBefore(history: KeyHistory | undefined, version: Version): Version | undefined {
  if (!history) return undefined
  let i = firstAfter(history, version.modRevision) - 1
  while (i >= 0 && history[i] !== version) i--
  const before = history[i - 1]
  return before && !isTombstone(before) ? before : undefined
}

/** Index of the first version whose modRevision is at least `revision`. */
export function firstFrom(history: KeyHistory, revision: Revision): number {
  return firstAfter(history, revision - 1)
}

/** Removes from the history what compact(revision) forgets, and returns it, oldest first. An emptied history means that the key is forgotten. */
export function compactHistory(history: KeyHistory, revision: Revision): Version[] {
  const keep = firstAfter(history, revision) - 1
  const kept = history[keep]
  if (!kept) return []
  return history.splice(0, isTombstone(kept) && kept.modRevision < revision ? keep + 1 : keep)
}

/** `value` empty for tombstones and where only the key is wanted. */
export function toKeyValue(version: Version, value: Uint8Array): KeyValue {
  const { key, createRevision, modRevision, lease } = version
  return { key, value, createRevision, modRevision, version: version.version, lease }
}

function firstAfter(history: KeyHistory, revision: Revision): number {
  // Nearly every question is about the newest end, so look there before searching.
  const last = history[history.length - 1]
  if (!last || last.modRevision <= revision) return history.length
  let low = 0
  let high = history.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if ((history[middle] as Version).modRevision <= revision) low = middle + 1
    else high = middle
  }
  return low
}
