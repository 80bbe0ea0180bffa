/** The cgroups of nodes, in every hierarchy (L5): found by name, and removed with all below them. */
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '#base/clock'

const root = '/sys/fs/cgroup'

/** Folders of the hierarchies' first level whose name matches: of version 2 directly below the root, of version 1 one level deeper. */
export async function cgroupsNamed(pattern: RegExp): Promise<string[]> {
  const first = await foldersIn(root)
  const second = await Promise.all(first.map((folder) => foldersIn(folder)))
  return [...first, ...second.flat()].filter((folder) => pattern.test(path.basename(folder)))
}

/** Removes a cgroup, the deepest below it first; processes that are just ending get a moment. */
export async function removeCgroups(folder: string, clock: Clock): Promise<void> {
  const below = await fs.readdir(folder, { recursive: true, withFileTypes: true }).catch(() => undefined)
  if (!below) return
  const folders = below.filter((entry) => entry.isDirectory()).map((entry) => path.join(entry.parentPath ?? entry.path, entry.name))
  for (const one of [...folders.sort((a, b) => b.length - a.length), folder]) await removeFolder(one, clock)
}

async function foldersIn(folder: string): Promise<string[]> {
  const entries = await fs.readdir(folder, { withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isDirectory()).map((entry) => path.join(folder, entry.name))
}

async function removeFolder(folder: string, clock: Clock): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt++) {
    try {
      await fs.rmdir(folder)
      return
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return
      if (code !== 'EBUSY') throw error
      await clock.sleep(20)
    }
  }
}
