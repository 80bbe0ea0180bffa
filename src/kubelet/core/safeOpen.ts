/**
 * Opens and makes paths inside a directory that others may write to (L3): each component is opened from the one before it, and links are
 * never followed, so that exchanging a component meanwhile cannot redirect the kubelet out of the directory.
 * Upstream: pkg/volume/util/subpath/subpath_linux.go (v1.36).
 */
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissing } from '#host/files'

/** Only a place in the tree, neither read nor written (open(2), O_PATH): Node has no name for it. */
const pathOnly = 0o10000000
const openFlags = pathOnly | constants.O_NOFOLLOW

/** The path of what is open, whatever has become of the names that led to it. */
export const pathOf = (place: FileHandle) => `/proc/self/fd/${place.fd}`
const through = (parent: FileHandle, name: string) => `${pathOf(parent)}/${name}`

/** Opens a place in the tree, neither for reading nor for writing. The caller closes. */
export const openPlace = (path: string): Promise<FileHandle> => open(path, openFlags)

/** An entry of an open directory, the link itself where it is one; undefined: it is gone. The caller closes. */
export async function openEntry(directory: FileHandle, name: string): Promise<FileHandle | undefined> {
  return openPlace(through(directory, name)).catch((error: unknown) => {
    if (!isMissing(error)) throw error
    return undefined
  })
}

export class OutsideError extends Error {}

function componentsWithin(root: string, path: string): string[] {
  if (path !== root && !path.startsWith(`${root}/`)) throw new OutsideError(`${path} is outside of ${root}`)
  return path.slice(root.length).split('/').filter(Boolean)
}

/** Opens `path`, which must be inside `root` and free of links; both are paths that realpath has answered. The caller closes. */
export async function openWithin(root: string, path: string): Promise<FileHandle> {
  const components = componentsWithin(root, path)
  let current = await open(root, openFlags)
  for (const name of components) {
    const parent = current
    try {
      current = await openComponent(parent, name, path)
    } finally {
      await parent.close()
    }
  }
  return current
}

/** @throws OutsideError when it is a link */
async function openComponent(parent: FileHandle, name: string, path: string): Promise<FileHandle> {
  const component = await open(through(parent, name), openFlags)
  try {
    if ((await component.stat()).isSymbolicLink()) throw new OutsideError(`unexpected symlink found ${path}`)
    return component
  } catch (error) {
    await component.close()
    throw error
  }
}

/** A file that was opened as a place in the tree, opened for reading; undefined: it is no regular file. Both handles are the caller's to close. */
async function reopenRegular(place: FileHandle): Promise<FileHandle | undefined> {
  // A pipe would keep a thread waiting for a writer, a device would hand out a disk.
  return (await place.stat()).isFile() ? open(pathOf(place), constants.O_RDONLY | constants.O_NONBLOCK) : undefined
}

/** Opens a regular file for reading. Undefined when the path is a link or anything else, such as a pipe that a container made; absent files too. */
export async function openRegular(path: string): Promise<FileHandle | undefined> {
  const place = await open(path, openFlags).catch((error: unknown) => {
    if (!isMissing(error)) throw error
  })
  if (!place) return undefined
  try {
    return await reopenRegular(place)
  } finally {
    await place.close()
  }
}

/** The same inside `root`: both are paths that realpath has answered, and links that came since are not followed. @throws OutsideError */
export async function openRegularWithin(root: string, path: string): Promise<FileHandle | undefined> {
  const place = await openWithin(root, path)
  try {
    return await reopenRegular(place)
  } finally {
    await place.close()
  }
}

/** Makes the directory `path` and those above it as far as they are missing, with the mode, all inside `root`. */
export async function makeDirectoriesWithin(root: string, path: string, mode: number): Promise<void> {
  const realRoot = await realpath(root)
  let existing = join(realRoot, path)
  const missing: string[] = []
  for (;;) {
    try {
      existing = await realpath(existing)
      break
    } catch (error) {
      if (!isMissing(error)) throw error
      missing.unshift(existing.slice(existing.lastIndexOf('/') + 1))
      existing = existing.slice(0, existing.lastIndexOf('/'))
    }
  }
  let parent = await openWithin(realRoot, existing)
  try {
    for (const name of missing) {
      await mkdir(through(parent, name), { mode: mode & 0o777 })
      const made = await open(through(parent, name), constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
      await parent.close()
      parent = made
      // The process's mask does not count, and a group is handed on.
      await made.chmod(mode & 0o2777)
    }
  } finally {
    await parent.close()
  }
}

/** Whether two paths are the same file. */
export async function isSameFile(a: FileHandle, path: string): Promise<boolean> {
  const [left, right] = [await a.stat(), await stat(path).catch(() => undefined)]
  return right !== undefined && left.dev === right.dev && left.ino === right.ino
}
