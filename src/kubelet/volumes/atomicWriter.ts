/**
 * Replaces the files of a configuration volume all at once (L3): a reader sees the old set or the new one, never a mixture.
 * The visible names are symlinks through ..data, which is itself a symlink to a timestamped directory that is swapped by rename.
 * Upstream: pkg/volume/util/atomic_writer.go (v1.36).
 */
import { chmod, chown, lstat, mkdtemp, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join, normalize } from 'node:path'
import { formatTime } from '#base/time'
import { listIfExists, makeDirectory } from '#host/files'
import { setVolumeOwnership } from './ownership.ts'

export interface FileProjection {
  readonly data: Uint8Array
  /** Permission bits. */
  readonly mode: number
  /** The owner; absent: whoever writes. */
  readonly uid?: number | undefined
}

export type Payload = ReadonlyMap<string, FileProjection>

const dataLink = '..data'
const maxFileNameLength = 255
const maxPathLength = 4096

/** Refuses names that would leave the volume or hide its own machinery. @throws Error with upstream's text. */
export function validatePath(path: string): void {
  const parts = path.split('/')
  if (path === '') throw new Error('invalid path: must not be empty: ""')
  if (path.startsWith('/')) throw new Error(`invalid path: must be relative path: ${path}`)
  if (path.length > maxPathLength) throw new Error(`invalid path: must be less than or equal to ${maxPathLength} characters`)
  if (parts.includes('..')) throw new Error(`invalid path: must not contain '..': ${path}`)
  if (parts.some((part) => part.length > maxFileNameLength))
    throw new Error(`invalid path: filenames must be less than or equal to ${maxFileNameLength} characters`)
  if (path.startsWith('..')) throw new Error(`invalid path: must not start with '..': ${path}`)
}

/** The payload under paths as the filesystem will show them: 'a//b/./c' is 'a/b/c'. */
function cleanPaths(payload: Payload): Map<string, FileProjection> {
  for (const path of payload.keys()) validatePath(path)
  return new Map([...payload].map(([path, file]) => [normalize(path), file]))
}

export interface WriteOptions {
  readonly fsGroup?: number | undefined
  /** Milliseconds since the epoch: the time is part of the hidden directory's name. */
  readonly nowMs: number
}

/** Makes the directory hold exactly the payload. Returns whether anything changed. */
export async function writeAtomically(target: string, given: Payload, { fsGroup, nowMs }: WriteOptions): Promise<boolean> {
  const payload = cleanPaths(given)
  if ((await makeDirectory(target)) !== undefined) await chmod(target, 0o777)
  const old = await readlink(join(target, dataLink)).catch(() => undefined)
  if (old !== undefined && (await isCurrent(join(target, old), payload))) return false
  // Before there are files in it, which get less: the group may write to the directory, not to them.
  if (old === undefined) await setVolumeOwnership(target, { fsGroup })
  const directory = await mkdtemp(join(target, `..${timestamp(nowMs)}.`))
  try {
    await chmod(directory, 0o755)
    for (const [path, file] of payload) await writeProjected(directory, path, file)
    await setVolumeOwnership(directory, { fsGroup, readOnly: true })
    await linkVisibleNames(target, payload)
    const temporary = join(target, `${dataLink}_tmp`)
    await rm(temporary, { force: true })
    await symlink(basename(directory), temporary)
    await rename(temporary, join(target, dataLink))
  } catch (error) {
    await rm(directory, { recursive: true, force: true })
    throw error
  }
  await removeOldNames(target, payload)
  if (old !== undefined) await rm(join(target, old), { recursive: true, force: true })
  return true
}

/** As Go formats a time by '2006_01_02_15_04_05'. */
function timestamp(nowMs: number): string {
  return formatTime(nowMs).slice(0, 19).replaceAll(/[-:T]/g, '_')
}

async function writeProjected(directory: string, path: string, { data, mode, uid }: FileProjection): Promise<void> {
  const full = join(directory, path)
  await makeDirectory(dirname(full), 0o755)
  await writeFile(full, data, { mode })
  await chmod(full, mode)
  if (uid !== undefined) await chown(full, uid, 0)
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

const visibleNames = (payload: Payload) => new Set([...payload.keys()].map((path) => path.split('/')[0] ?? path))

/** One symlink for each top-level name. They come before the swap: a name may lead nowhere for a moment, never to something old. */
async function linkVisibleNames(target: string, payload: Payload): Promise<void> {
  for (const name of visibleNames(payload)) {
    const link = join(target, name)
    if ((await readlink(link).catch(() => undefined)) === undefined) await symlink(join(dataLink, name), link)
  }
}

/** Names that are no longer in the payload go, after the swap. Only links of ours: a mount point of another volume stays. */
async function removeOldNames(target: string, payload: Payload): Promise<void> {
  const wanted = visibleNames(payload)
  for (const name of await listIfExists(target)) {
    if (name.startsWith('..') || wanted.has(name)) continue
    if ((await lstat(join(target, name))).isSymbolicLink()) await rm(join(target, name), { force: true })
  }
}
