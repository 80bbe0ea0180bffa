/**
 * Replaces the files of a configuration volume all at once (L3): a reader sees the old set or the new one, never a mixture.
 * The visible names are symlinks through ..data, which is itself a symlink to a timestamped directory that is swapped by rename.
 * Upstream: pkg/volume/util/atomic_writer.go (v1.36).
 */
import { randomBytes } from 'node:crypto'
import { chmod, chown, lstat, mkdir, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { listIfExists } from '#host/files'

export interface FileProjection {
  readonly data: Uint8Array
  /** Permission bits. */
  readonly mode: number
  /** The owner; absent: whoever writes. */
  readonly uid?: number | undefined
}

export type Payload = ReadonlyMap<string, FileProjection>

const dataLink = '..data'

/** Refuses names that would leave the volume or hide its own machinery. @throws Error */
export function validatePath(path: string): void {
  const parts = path.split('/')
  if (path === '' || path.startsWith('/') || path.length > 4096 || parts.some((part) => part === '..' || part === '' || part === '.' || part.length > 255)) {
    throw new Error(`invalid path: ${path}`)
  }
  if (path.startsWith('..')) throw new Error(`invalid path: must not begin with '..': ${path}`)
}

/** Makes the directory hold exactly the payload. Returns whether anything changed. */
export async function writeAtomically(target: string, payload: Payload, fsGroup?: number): Promise<boolean> {
  for (const path of payload.keys()) validatePath(path)
  await mkdir(target, { recursive: true })
  const old = await readlink(join(target, dataLink)).catch(() => undefined)
  if (old !== undefined && (await isCurrent(join(target, old), payload))) return false
  const name = `..${randomBytes(8).toString('hex')}`
  const directory = join(target, name)
  await mkdir(directory, { mode: 0o755 })
  await chmod(directory, 0o755)
  for (const [path, file] of payload) await writeProjected(directory, path, file, fsGroup)
  const temporary = join(target, `${dataLink}_tmp`)
  await rm(temporary, { force: true })
  await symlink(name, temporary)
  await rename(temporary, join(target, dataLink))
  await linkVisibleNames(target, payload)
  if (old !== undefined && old !== name) await rm(join(target, old), { recursive: true, force: true })
  return true
}

async function writeProjected(directory: string, path: string, file: FileProjection, fsGroup: number | undefined): Promise<void> {
  const full = join(directory, path)
  await mkdir(dirname(full), { recursive: true, mode: 0o755 })
  // A group that owns the file may read it whatever the mode says.
  const mode = fsGroup === undefined ? file.mode : file.mode | 0o440
  await writeFile(full, file.data, { mode })
  await chmod(full, mode)
  if (fsGroup !== undefined || file.uid !== undefined) await chown(full, file.uid ?? 0, fsGroup ?? 0)
}

async function isCurrent(directory: string, payload: Payload): Promise<boolean> {
  const present = await filesBelow(directory, '')
  if (present.length !== payload.size) return false
  for (const [path, { data }] of payload) {
    const old = await readFile(join(directory, path)).catch(() => undefined)
    if (!old?.equals(data)) return false
  }
  return true
}

async function filesBelow(directory: string, prefix: string): Promise<string[]> {
  const names = await listIfExists(join(directory, prefix))
  const found = await Promise.all(
    names.map(async (name) => {
      const path = prefix === '' ? name : `${prefix}/${name}`
      return (await lstat(join(directory, path))).isDirectory() ? filesBelow(directory, path) : [path]
    }),
  )
  return found.flat()
}

/** One symlink for each top-level name; those that are no longer in the payload go. */
async function linkVisibleNames(target: string, payload: Payload): Promise<void> {
  const wanted = new Set([...payload.keys()].map((path) => path.split('/')[0] ?? path))
  for (const name of wanted) {
    const link = join(target, name)
    if ((await readlink(link).catch(() => undefined)) === undefined) await symlink(join(dataLink, name), link)
  }
  for (const name of await listIfExists(target)) {
    if (!name.startsWith('..') && !wanted.has(name)) await rm(join(target, name), { force: true })
  }
}
