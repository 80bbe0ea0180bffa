/**
 * Disk usage of directories (L3): adds up the files of a directory. Adding up is expensive, so results are
 * cached. Upstream: kubelet/server/stats/volume_stat_calculator.go, volume/util/fs (v1.36).
 */
import { type Dir, lstatSync, opendirSync } from 'node:fs'
import type { Clock } from '#base/clock'
import type { KubeletHost } from '../../core/host.ts'

export interface DirectoryUsage {
  readonly bytes: number
  readonly inodes: number
}

/** Entries that are read before the event loop gets a turn. */
const batch = 500

/**
 * Adds up everything below, on the directory's own filesystem; a file with several names counts once. Files that vanish meanwhile do not count. A directory is
 * read in batches, because a container may make it very large.
 */
export async function directoryUsage(directory: string): Promise<DirectoryUsage> {
  const root = statOf(directory)
  if (!root) return { bytes: 0, inodes: 0 }
  const linked = new Set<number>()
  const waiting = root.isDirectory() ? [directory] : []
  let [bytes, inodes, looked] = [root.blocks * 512, 1, 0]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const entries = openDirectory(path)
    try {
      for (let entry = entries?.readSync(); entry; entry = entries?.readSync()) {
        if (++looked % batch === 0) await new Promise((resolve) => setImmediate(resolve))
        const stat = statOf(`${path}/${entry.name}`)
        if (!stat || stat.dev !== root.dev || linked.has(stat.ino)) continue
        if (stat.nlink > 1 && !stat.isDirectory()) linked.add(stat.ino)
        bytes += stat.blocks * 512
        inodes++
        if (stat.isDirectory()) waiting.push(`${path}/${entry.name}`)
      }
    } finally {
      entries?.closeSync()
    }
  }
  return { bytes, inodes }
}

function statOf(path: string) {
  return lstatSync(path, { throwIfNoEntry: false })
}

function openDirectory(path: string): Dir | undefined {
  try {
    return opendirSync(path)
  } catch {
    return undefined
  }
}

const maxKept = 4096

export interface DiskUsage {
  /** Adds up a directory of the node. */
  directory(nodePath: string): Promise<DirectoryUsage>
}

/** @param keptMs how long a sum holds */
export function createDiskUsage(host: KubeletHost, clock: Clock, keptMs: number): DiskUsage {
  const kept = new Map<string, { readonly untilMs: number; readonly usage: Promise<DirectoryUsage> }>()
  return {
    directory(nodePath) {
      const known = kept.get(nodePath)
      if (known && known.untilMs > clock.now()) return known.usage
      kept.delete(nodePath)
      const usage = directoryUsage(host.path(nodePath))
      kept.set(nodePath, { untilMs: clock.now() + keptMs, usage })
      const [oldest] = kept.keys()
      if (kept.size > maxKept && oldest !== undefined) kept.delete(oldest)
      return usage
    },
  }
}
