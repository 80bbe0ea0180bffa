/**
 * Small file helpers (L1) that several components need and node:fs does not have: atomic replacement, absent files as values, disk usage.
 */
import { randomBytes } from 'node:crypto'
import { chmod, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** True when the error says that the file is not there. */
export function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  return code === 'ENOENT' || code === 'ENOTDIR'
}

/** The file's text, or undefined when there is no such file. */
export async function readTextIfExists(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** Entry names, or none when there is no such directory. */
export async function listIfExists(path: string): Promise<string[]> {
  try {
    return await readdir(path)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

/**
 * Makes the directory and those above it. Answers with the first that was made; undefined: all were there. Its error names what is in the way, such as a full
 * disk, where node's own says of every one that could not be made that it does not exist.
 */
export async function makeDirectory(path: string, mode?: number): Promise<string | undefined> {
  try {
    return await mkdir(path, { recursive: true, mode })
  } catch (error) {
    const failed = (error as NodeJS.ErrnoException).path
    if (!isMissing(error) || failed === undefined) throw error
    await mkdir(failed, { mode }).catch((reason: NodeJS.ErrnoException) => (reason.code === 'EEXIST' ? undefined : Promise.reject(reason)))
    await mkdir(path, { recursive: true, mode })
    return failed
  }
}

const forOthers = 0o077
const sticky = 0o1000

/**
 * Makes the directory and those above it, open to its owner alone, whatever the umask; closes it when it was there and open to others. A directory of
 * another user, or one that users share (sticky, such as /tmp), stays as it is.
 */
export async function makePrivateDirectory(path: string): Promise<void> {
  await makeDirectory(path, 0o700)
  const { mode, uid } = await stat(path)
  if ((mode & forOthers) !== 0 && (mode & sticky) === 0 && uid === process.geteuid?.()) await chmod(path, 0o700)
}

/** Removes the rights of group and others on a file with secrets. Does nothing when the file is absent. */
export async function makePrivateFile(path: string): Promise<void> {
  const found = await stat(path).catch((error: unknown) => {
    if (!isMissing(error)) throw error
  })
  if (found && (found.mode & 0o007) !== 0 && found.uid === process.geteuid?.()) await chmod(path, 0o600)
}

/** Replaces a file so that a reader sees the old content or the new, never a part; fsynced before the rename. */
export async function writeFileAtomic(path: string, content: string | Uint8Array, mode = 0o644): Promise<void> {
  await makeDirectory(dirname(path))
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  const file = await open(temporary, 'wx', mode)
  try {
    try {
      await file.writeFile(content)
      await file.chmod(mode)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (error) {
    // Also on a full disk: the half-written file would keep space that nothing reclaims.
    await rm(temporary, { force: true })
    throw error
  }
}
