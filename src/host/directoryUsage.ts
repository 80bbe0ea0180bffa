/** What a directory takes on its disk (L1): blocks and inodes of everything below it, without what is mounted there. Upstream: pkg/volume/util/fs GetInfo. */
import { lstat, opendir } from 'node:fs/promises'
import { join } from 'node:path'

export interface DirectoryUsage {
  readonly bytes: number
  readonly inodes: number
}

/** Files that vanish meanwhile do not count; a file with several names counts once. A missing directory takes nothing. */
export async function directoryUsage(directory: string): Promise<DirectoryUsage> {
  const root = await lstat(directory).catch(() => undefined)
  if (!root) return { bytes: 0, inodes: 0 }
  let bytes = root.blocks * 512
  let inodes = 1
  const linked = new Set<number>()
  const pending = root.isDirectory() ? [directory] : []
  for (let current = pending.pop(); current !== undefined; current = pending.pop()) {
    const entries = await opendir(current).catch(() => undefined)
    if (!entries) continue
    for await (const entry of entries) {
      const path = join(current, entry.name)
      const stats = await lstat(path).catch(() => undefined)
      if (!stats || stats.dev !== root.dev || linked.has(stats.ino)) continue
      if (stats.nlink > 1 && !stats.isDirectory()) linked.add(stats.ino)
      bytes += stats.blocks * 512
      inodes++
      if (stats.isDirectory()) pending.push(path)
    }
  }
  return { bytes, inodes }
}
