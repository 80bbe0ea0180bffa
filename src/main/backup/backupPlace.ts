/** What a place for scheduled backups can do (L5), and the check that tells a backup from another file of its name. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { isMissing } from '#host/files'
import { hasTrailer, trailerBytes } from '#store/snapshot/snapshotFile'

export interface SavedBackup {
  readonly bytes: number
  /** The snapshot's, hexadecimal. */
  readonly sha256: string
}

export interface BackupPlace {
  /** @param save writes a snapshot to a file; the backup has its name when it is complete. @throws Error */
  add(name: string, save: (file: string) => Promise<unknown>, signal: AbortSignal): Promise<SavedBackup>
  /** The SHA-256 of the snapshot with that name; undefined when there is none. */
  digestOf(name: string, signal: AbortSignal): Promise<string | undefined>
  remove(name: string, signal: AbortSignal): Promise<void>
}

/** The length and the SHA-256 at the end of a snapshot; undefined when the file is missing or is something else, such as a link. */
export async function trailerOf(file: string): Promise<SavedBackup | undefined> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    if (isMissing(error) || error.code === 'ELOOP') return undefined
    throw error
  })
  try {
    const stats = await handle?.stat()
    if (!handle || !stats?.isFile() || !hasTrailer(stats.size)) return undefined
    const trailer = Buffer.alloc(trailerBytes)
    await handle.read(trailer, 0, trailerBytes, stats.size - trailerBytes)
    return { bytes: stats.size, sha256: trailer.toString('hex') }
  } finally {
    await handle?.close()
  }
}
