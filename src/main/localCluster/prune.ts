/** Removes what clusters left on this host whose description is gone (L5): of any home what their marks show, of this home also their directories. */
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Removal } from '#cli/clusterManager'
import type { Progress } from '#cli/progress'
import { exclusively } from './clusterLock.ts'
import { clusterPaths } from './clusterState.ts'
import { type ClusterMark, isDescribed, isOnlyRestored, markOf, removeTag } from './clusterTags.ts'
import type { LocalClusterDeps } from './deps.ts'
import { describeRemains, findRemains, goneClusters, removeRemains } from './remains.ts'

export async function prune(deps: LocalClusterDeps, progress: Progress, dryRun: boolean): Promise<Removal> {
  const here = await undescribed(deps.home)
  const marks = new Map([...here, ...(await goneClusters())].map((mark) => [mark.dir, mark]))
  const all: Removal[] = []
  for (const mark of marks.values()) {
    const isHere = here.some(({ dir }) => dir === mark.dir)
    const work = () => pruneOne(deps, mark, isHere, dryRun)
    // In this home, a command may be making the cluster just now.
    all.push(isHere ? await exclusively(deps, mark.name, progress, work) : await work())
  }
  return { removed: all.flatMap(({ removed }) => removed), left: all.flatMap(({ left }) => left) }
}

/** Directories of clusters in a home without a description: a removal was interrupted, or a process wrote there after it. */
async function undescribed(home: string): Promise<ClusterMark[]> {
  const entries = await fs.readdir(path.join(home, 'clusters'), { withFileTypes: true }).catch(() => [])
  const marks = entries.filter((entry) => entry.isDirectory()).map(({ name }) => markOf(home, name))
  const there = await Promise.all(marks.map(async ({ dir, name }) => (await isDescribed(dir)) || isOnlyRestored(clusterPaths(home, name))))
  return marks.filter((_, i) => !there[i])
}

async function pruneOne(deps: LocalClusterDeps, mark: ClusterMark, removesDirectory: boolean, dryRun: boolean): Promise<Removal> {
  if (await isDescribed(mark.dir)) return { removed: [], left: [] }
  const remains = await findRemains(deps, mark)
  const removed = [...describeRemains(remains), ...(removesDirectory ? [`directory ${mark.dir}`] : [])]
  if (dryRun) return { removed, left: [] }
  const left = await removeRemains(deps, mark, remains)
  if (removesDirectory) await fs.rm(mark.dir, { recursive: true, force: true })
  // The next prune needs the tag to find the rest.
  if (left.length === 0) await removeTag(mark)
  return { removed, left }
}
