/**
 * Replaces the files of a configuration volume all at once (L3): a reader sees the old set or the new one, never a mixture.
 * The visible names are symlinks through ..data, which is itself a symlink to a timestamped directory that is swapped by rename.
 * The files are few and small, and the kernel keeps them in memory: each step at once costs a tenth of a trip to another thread.
 * Upstream: pkg/volume/util/atomic_writer.go (v1.36).
 */
import { chmodSync, chownSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, dirname, join, normalize } from 'node:path'
import { formatTime } from '#base/time'
import { isMissing, makeDirectory } from '#host/files'
import { setVolumeOwnership } from './ownership.ts'

export interface FileProjection {
  readonly data: Uint8Array
  /** Permission bits. */
  readonly mode: number
  /** The owner; absent: the user of the kubelet. */
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
  /** Gives others a turn between the files. */
  readonly turn: () => Promise<void>
}

/** Files that are written in one turn: some milliseconds of work. */
const filesPerTurn = 100

/** Makes the directory hold exactly the payload. Returns whether anything changed. */
export async function writeAtomically(target: string, given: Payload, { fsGroup, nowMs, turn }: WriteOptions): Promise<boolean> {
  const payload = cleanPaths(given)
  if ((await makeDirectory(target)) !== undefined) chmodSync(target, 0o777)
  const old = readLink(join(target, dataLink))
  if (old !== undefined && isCurrent(join(target, old), payload)) return false
  // Before there are files in it, which get less: the group may write to the directory, not to them.
  if (old === undefined) await setVolumeOwnership(target, { fsGroup })
  const directory = mkdtempSync(join(target, `..${timestamp(nowMs)}.`))
  try {
    chmodSync(directory, 0o755)
    let written = 0
    for (const [path, file] of payload) {
      await writeProjected(directory, path, file)
      if (++written % filesPerTurn === 0) await turn()
    }
    await setVolumeOwnership(directory, { fsGroup, readOnly: true })
    linkVisibleNames(target, payload)
    const temporary = join(target, `${dataLink}_tmp`)
    rmSync(temporary, { force: true })
    symlinkSync(basename(directory), temporary)
    renameSync(temporary, join(target, dataLink))
  } catch (error) {
    await rm(directory, { recursive: true, force: true })
    throw error
  }
  removeOldNames(target, payload)
  if (old !== undefined) await rm(join(target, old), { recursive: true, force: true })
  return true
}

/** As Go formats a time by '2006_01_02_15_04_05'. */
function timestamp(nowMs: number): string {
  return formatTime(nowMs).slice(0, 19).replaceAll(/[-:T]/g, '_')
}

async function writeProjected(directory: string, path: string, { data, mode, uid }: FileProjection): Promise<void> {
  const full = join(directory, path)
  if (path.includes('/')) await makeDirectory(dirname(full), 0o755)
  writeFileSync(full, data, { mode })
  chmodSync(full, mode)
  if (uid !== undefined) chownSync(full, uid, 0)
}

/** Where a symlink leads; undefined when there is none. */
function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

function isCurrent(directory: string, payload: Payload): boolean {
  const present = filesBelow(directory, '')
  return present.length === payload.size && present.every((path) => holds(join(directory, path), payload.get(path)?.data))
}

function holds(path: string, data: Uint8Array | undefined): boolean {
  try {
    return data !== undefined && readFileSync(path).equals(data)
  } catch {
    return false
  }
}

function filesBelow(directory: string, prefix: string): string[] {
  return entriesOf(join(directory, prefix)).flatMap((entry) => {
    const path = prefix === '' ? entry.name : `${prefix}/${entry.name}`
    return entry.isDirectory() ? filesBelow(directory, path) : [path]
  })
}

/** The entries of a directory; none when it is missing. */
function entriesOf(directory: string) {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

const visibleNames = (payload: Payload) => new Set([...payload.keys()].map((path) => path.split('/')[0] ?? path))

/** One symlink for each top-level name. They are created before the swap: a name may lead nowhere for a moment, but never to old content. */
function linkVisibleNames(target: string, payload: Payload): void {
  for (const name of visibleNames(payload)) {
    const link = join(target, name)
    if (readLink(link) === undefined) symlinkSync(join(dataLink, name), link)
  }
}

/** Names that are no longer in the payload go, after the swap. Only links of ours: a mount point of another volume stays. */
function removeOldNames(target: string, payload: Payload): void {
  const wanted = visibleNames(payload)
  for (const entry of entriesOf(target)) {
    if (entry.name.startsWith('..') || wanted.has(entry.name)) continue
    if (entry.isSymbolicLink()) rmSync(join(target, entry.name), { force: true })
  }
}
