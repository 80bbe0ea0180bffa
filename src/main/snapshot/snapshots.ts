/** `skiff snapshot` over local clusters (L5). */
import { createHash } from 'node:crypto'
import { noLog } from '#base/log'
import { CommandError } from '#cli/exitCodes'
import type { SnapshotDifference, SnapshotStatus, Snapshots } from '#cli/snapshots'
import { readSnapshot, SnapshotFigures } from '#store/snapshot/readSnapshot'
import { exclusively } from '../localCluster/clusterLock.ts'
import { clusterPaths, newestFormat, readState, writeState } from '../localCluster/clusterState.ts'
import type { LocalClusterDeps } from '../localCluster/deps.ts'
import { runningProcess } from '../localCluster/processes.ts'
import { restoreSnapshot } from './restoreSnapshot.ts'
import { etcdOf, saveSnapshot } from './saveSnapshot.ts'
import { withSnapshotFile } from './snapshotSource.ts'

export function createSnapshots(deps: LocalClusterDeps): Snapshots {
  const tools = { clock: deps.clock, log: noLog }
  return {
    save: async (name, file) => {
      const paths = clusterPaths(deps.home, name)
      const state = await readState(paths)
      if (!state) throw new CommandError('notFound', `there is no cluster "${name}"`)
      return { bytes: await saveSnapshot({ paths, state, tools }, file) }
    },
    status: (file) =>
      withSnapshotFile(file, 'optional', async (source): Promise<SnapshotStatus> => {
        const figures = new SnapshotFigures()
        const { revision, totalSize, version } = await readSnapshot(source, () => {}, figures)
        return { hash: figures.hash, revision, totalKey: figures.totalKey, totalSize, version }
      }),
    diff: async (first, second) => difference(await digestsOf(first), await digestsOf(second)),
    restore: (file, name, options, progress) =>
      exclusively(deps, name, progress, async () => {
        const paths = clusterPaths(deps.home, name)
        const state = await readState(paths)
        for (const pidFile of [paths.supervisorPid, paths.server('server').pid]) {
          if (await runningProcess(pidFile)) throw new CommandError('conflict', `cluster "${name}" is running`, { hint: `stop it first: skiff stop ${name}` })
        }
        if (state && (await etcdOf({ paths, state, tools }))) {
          throw new CommandError('usage', `cluster "${name}" has its objects in etcd, not in a file of its own`, {
            hint: 'restore into a new cluster, whose objects are in a file: skiff snapshot restore FILE NEW',
          })
        }
        // A store with lease ids of etcd is none for a version that reads the first format only.
        const raiseFormat = async () => {
          if (state && (state.format ?? 1) < newestFormat) await writeState(paths, { ...state, format: newestFormat })
        }
        return restoreSnapshot(file, paths.store, options, tools, raiseFormat)
      }),
  }
}

/** A digest of the newest value of each key. */
function digestsOf(file: string): Promise<Map<string, string>> {
  return withSnapshotFile(file, 'optional', async (source) => {
    const digests = new Map<string, string>()
    await readSnapshot(source, (changes) => {
      for (const { key, value, version } of changes) {
        if (version === 0) digests.delete(key)
        else digests.set(key, createHash('sha256').update(value).digest('base64'))
      }
    })
    return digests
  })
}

function difference(first: ReadonlyMap<string, string>, second: ReadonlyMap<string, string>): SnapshotDifference {
  const keys = [...second.keys()]
  return {
    added: keys.filter((key) => !first.has(key)).sort(),
    removed: [...first.keys()].filter((key) => !second.has(key)).sort(),
    changed: keys.filter((key) => first.has(key) && first.get(key) !== second.get(key)).sort(),
  }
}
