/**
 * Small file helpers (L1) that several components need and node:fs does not have: atomic replacement, absent files as values, disk usage.
 */
import { randomBytes } from 'node:crypto'
import { constants, mkdirSync, statSync } from 'node:fs'
import { access, chmod, mkdir, open, readdir, readFile, rename, rm, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'

/** True when the error says that the file is not there. */
export function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  return code === 'ENOENT' || code === 'ENOTDIR'
}

/** True when this process can reach the path or, with `run`, execute it. */
export function exists(path: string, use: 'any' | 'run' = 'any'): Promise<boolean> {
  return access(path, use === 'run' ? constants.X_OK : constants.F_OK).then(
    () => true,
    () => false,
  )
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

/** The file's size in bytes; 0 when there is no such file. */
export async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if (isMissing(error)) return 0
    throw error
  }
}

/** Bytes that are free on the disk of a directory. */
export async function freeBytesOf(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory)
  return bavail * bsize
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
 * Makes the directory and those above it. Answers with the first that was made; undefined: all were there. Node's recursive mkdir does not end where a directory
 * exists and refuses new entries with ENOENT, as below /proc and in a directory that was removed: here each directory is tried at most twice.
 */
export async function makeDirectory(path: string, mode?: number): Promise<string | undefined> {
  if (await tryMkdir(path, mode)) return path
  if (await isDirectory(path)) return undefined
  const parent = dirname(path)
  const first = parent === path ? undefined : await makeDirectory(parent, mode)
  try {
    await mkdir(path, { mode })
  } catch (error) {
    // Another process may have made it since.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !(await isDirectory(path))) throw error
  }
  return first ?? path
}

/** The same without a promise. */
export function makeDirectorySync(path: string, mode?: number): void {
  const parent = dirname(path)
  try {
    mkdirSync(path, { mode })
    return
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && statSync(path).isDirectory()) return
    if (code !== 'ENOENT' || parent === path) throw error
  }
  makeDirectorySync(parent, mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    // Another process may have made it since.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(path).isDirectory()) throw error
  }
}

/** False when something above it is missing, or something is there already. */
async function tryMkdir(path: string, mode: number | undefined): Promise<boolean> {
  try {
    await mkdir(path, { mode })
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'EEXIST') return false
    throw error
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory()
  } catch (error) {
    if (isMissing(error)) return false
    throw error
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
    // The error of a write names no file.
    throw error instanceof Error && !('path' in error) ? Object.assign(error, { path }) : error
  }
}

/**
 * The same for a short JSON text, also on a full disk where the file is there: it is overwritten in place, by one write, padded with spaces to the old length.
 * A crash of the host during that write may damage the file.
 */
export async function writeSmallJson(path: string, json: string, mode: number): Promise<void> {
  try {
    await writeFileAtomic(path, json, mode)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC' || !(await exists(path))) throw error
    const file = await open(path, 'r+')
    try {
      const text = Buffer.from(json.padEnd((await file.stat()).size))
      await file.write(text, 0, text.length, 0)
      await file.sync()
    } finally {
      await file.close()
    }
  }
}

/** The names in a directory are on the disk afterwards. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  await directory.sync().finally(() => directory.close())
}
