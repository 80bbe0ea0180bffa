/**
 * A log file that is followed through its renamings (L3). A reader may be several rotations behind: the files in between are read too, also when
 * they were compressed meanwhile. Upstream follows by name and misses what lies between (cri-client/pkg/logs, v1.36).
 */
import { type FileHandle, open } from 'node:fs/promises'
import { createGunzip } from 'node:zlib'
import { compressedSuffix, rotatedBeside, rotationOf, sortRotated } from './logFiles.ts'

export interface FollowedLog {
  /** The file that is being read. */
  readonly file: FileHandle
  /**
   * Called at the end of `file`. 'same': the end of the log for now. 'again': the file was renamed just now; read it again until its end.
   * 'moved': `file` is the next file, at its beginning. A stream: a compressed file in between; call again after it.
   */
  next(): Promise<'same' | 'again' | 'moved' | AsyncIterable<Buffer>>
}

const stemsOf = async (path: string) => [...new Set(sortRotated(await rotatedBeside(path)).inUse.map(rotationOf))].sort()

/** @throws Error when there is no such file */
export async function openFollowed(path: string): Promise<FollowedLog> {
  let { file, newest } = await openBetween(path)
  /** Renamed away: a last look before it is left, because its writer closes it a moment later. */
  let leaving = false
  /** What `file` is called since. */
  let own: string | undefined
  const take = async (next: FileHandle, left: string) => {
    await file.close()
    file = next
    newest = left
    own = undefined
    leaving = false
    return 'moved' as const
  }
  return {
    get file() {
      return file
    },
    async next() {
      const later = (await stemsOf(path)).filter((stem) => newest === undefined || stem > newest)
      own ??= later[0]
      if (own === undefined) return 'same'
      if (!leaving) {
        leaving = true
        return 'again'
      }
      const following = later.find((stem) => stem > (own as string))
      if (following === undefined) {
        // Between the renaming and the reopening there is no file.
        const current = await open(path, 'r').catch(() => undefined)
        if (!current) return 'again'
        // The log was renamed meanwhile: this file is not the next one but a later one.
        if ((await newestStem(path, current)) === later.at(-1)) return take(current, own)
        await current.close()
        return 'again'
      }
      const plain = await open(following, 'r').catch(() => undefined)
      if (plain) return take(plain, own)
      newest = own
      own = following
      const compressed = await open(`${following}${compressedSuffix}`, 'r').catch(() => undefined)
      // Neither: the file was removed as the oldest one.
      return compressed ? gunzipped(compressed) : 'again'
    },
  }
}

/** Closes `opened`, which depends on the answer, when there is none. */
async function newestStem(path: string, opened: FileHandle): Promise<string | undefined> {
  try {
    return (await stemsOf(path)).at(-1)
  } catch (error) {
    await opened.close()
    throw error
  }
}

/** The file, and the newest of those that had been renamed away when it was opened. */
async function openBetween(path: string): Promise<{ file: FileHandle; newest: string | undefined }> {
  for (;;) {
    const before = (await stemsOf(path)).at(-1)
    const file = await open(path, 'r')
    if ((await newestStem(path, file)) === before) return { file, newest: before }
    await file.close()
  }
}

/** The file is closed when the reader leaves, too: pipe() alone leaves it open then. */
function gunzipped(file: FileHandle): AsyncIterable<Buffer> {
  const stream = createGunzip()
  const source = file.createReadStream()
  source.on('error', (error) => stream.destroy(error)).pipe(stream)
  stream.once('close', () => source.destroy())
  return stream
}
