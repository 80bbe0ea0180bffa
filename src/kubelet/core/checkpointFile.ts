/**
 * A checkpoint file of the kubelet (L3, edge): read once, then replaced as a whole whenever its content changes, one write at a time.
 * What stands in it is others' work. Upstream: kubelet/checkpointmanager (v1.36).
 */
import { readTextIfExists, writeFileAtomic } from '#host/files'

export interface CheckpointFile {
  /** The path as the node sees it, for messages. */
  readonly path: string
  /** Undefined when there is none. */
  read(): Promise<string | undefined>
  /** Resolves once a text as new as this call is on the disk; one that is there already is not written again, which a full disk would refuse. */
  write(text: () => string): Promise<void>
}

/** @param file the file's path for this process */
export function checkpointFile(path: string, file: string): CheckpointFile {
  let last: Promise<void> = Promise.resolve()
  let waiting: Promise<void> | undefined
  let onDisk: string | undefined
  const replace = async (text: string): Promise<void> => {
    if (text === onDisk) return
    // The content on disk is unknown until the write succeeds.
    onDisk = undefined
    await writeFileAtomic(file, text, 0o600)
    onDisk = text
  }
  return {
    path,
    read: async () => {
      onDisk = await readTextIfExists(file)
      return onDisk
    },
    write: (text) => {
      // Calls that arrive while a write is queued share that write.
      waiting ??= last
        .catch(() => {})
        .then(() => {
          waiting = undefined
          last = replace(text())
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
