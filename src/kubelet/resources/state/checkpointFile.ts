/**
 * A checkpoint file of the kubelet (L3, edge): read once, then replaced whole whenever what it tells has changed, one write at a time.
 * What stands in it is others' work. Upstream: kubelet/checkpointmanager (v1.36).
 */
import { readTextIfExists, writeFileAtomic } from '#host/files'

export interface CheckpointFile {
  /** The path as the node sees it, for messages. */
  readonly path: string
  /** Undefined when there is none. */
  read(): Promise<string | undefined>
  /** Resolves once a text as new as this call is on the disk. */
  write(text: () => string): Promise<void>
}

/** @param file the file's path for this process */
export function checkpointFile(path: string, file: string): CheckpointFile {
  let last: Promise<void> = Promise.resolve()
  let waiting: Promise<void> | undefined
  return {
    path,
    read: () => readTextIfExists(file),
    write: (text) => {
      // Whoever comes while a write waits for its turn is told by that write as well.
      waiting ??= last
        .catch(() => {})
        .then(() => {
          waiting = undefined
          last = writeFileAtomic(file, text(), 0o600)
          return last
        })
      return waiting
    },
  }
}

/** For nodes without a disk: simulated ones, and tests. */
export function noCheckpoint(): CheckpointFile {
  return { path: '', read: async () => undefined, write: async () => {} }
}
