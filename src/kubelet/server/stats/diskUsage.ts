/** Disk usage of directories (L3), cached: adding up the files of a directory is expensive. Upstream: kubelet/server/stats/volume_stat_calculator.go. */
import type { Clock } from '#base/clock'
import { createDirectoryMeasure, type DirectoryUsage } from '#host/directoryUsage'
import type { KubeletHost } from '../../core/host.ts'

const maxKept = 4096

export interface DiskUsage {
  /** Adds up a directory of the node. */
  directory(nodePath: string): Promise<DirectoryUsage>
}

/** @param keptMs how long a sum holds */
export function createDiskUsage(host: KubeletHost, clock: Clock, keptMs: number): DiskUsage {
  const measure = createDirectoryMeasure()
  const kept = new Map<string, { readonly untilMs: number; readonly usage: Promise<DirectoryUsage> }>()
  return {
    directory(nodePath) {
      const known = kept.get(nodePath)
      if (known && known.untilMs > clock.now()) return known.usage
      kept.delete(nodePath)
      const usage = measure(host.path(nodePath))
      kept.set(nodePath, { untilMs: clock.now() + keptMs, usage })
      const [oldest] = kept.keys()
      if (kept.size > maxKept && oldest !== undefined) kept.delete(oldest)
      return usage
    },
  }
}
