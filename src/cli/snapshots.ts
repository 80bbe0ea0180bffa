/** What `skiff snapshot` asks for (L4). main/snapshot implements it. */
import type { Progress } from './progress.ts'

/** As etcdutl prints it. */
export interface SnapshotStatus {
  readonly hash: number
  readonly revision: number
  readonly totalKey: number
  /** Bytes of the database, without the trailer. */
  readonly totalSize: number
  /** etcd's release of the layout; empty before 3.6. */
  readonly version: string
}

export interface SnapshotDifference {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
}

export interface RestoreOptions {
  /** Added to the newest revision; 0: the revision stays. */
  readonly bumpRevision: number
  /** A copy of etcd's own file has no trailer. */
  readonly skipHashCheck: boolean
}

export interface RestoredSnapshot extends SnapshotStatus {
  /** Where the store that was there is now; undefined when there was none. */
  readonly backup: string | undefined
  /** The newest revision of the restored store. */
  readonly restoredRevision: number
}

export interface Snapshots {
  /** Saves the store of a cluster, which may run. @returns the length of the file in bytes */
  save(cluster: string, file: string, progress: Progress): Promise<{ readonly bytes: number }>
  /** @throws CommandError when the file is no snapshot, or a damaged one */
  status(file: string): Promise<SnapshotStatus>
  /** What the second snapshot has otherwise than the first one, by key. */
  diff(first: string, second: string): Promise<SnapshotDifference>
  /** Replaces the store of a cluster that is stopped, or makes that of a new one. Until the new store is complete, the old one stays. */
  restore(file: string, cluster: string, options: RestoreOptions, progress: Progress): Promise<RestoredSnapshot>
}
