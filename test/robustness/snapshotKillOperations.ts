/** A cluster's folder in HOME, and what is done to it until a kill: by the test itself, and by the process that is killed. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { noLog } from '#base/log'
import { createProgress } from '#cli/progress'
import { createExec } from '#host/exec'
import { clusterPaths, writeState } from '#main/localCluster/clusterState'
import { createSnapshots } from '#main/snapshot/snapshots'
import { openLmdbStore } from '#store/drivers/lmdb'
import type { LocalStore } from '#store/store'
import { realClock } from '#testing/realClock'

const name = 'a'
const progress = createProgress({ write: () => {}, terminal: false, color: false, columns: 80, quiet: true, clock: realClock })
const snapshotsIn = (home: string) => createSnapshots({ clock: realClock, exec: createExec(), isRoot: false, platform: 'linux', home, self: ['node', 'skiff'] })

export const storeFolder = (home: string) => clusterPaths(home, name).store
export const savedFile = (home: string) => join(home, 'saved.db')

export async function makeCluster(home: string): Promise<void> {
  await writeState(clusterPaths(home, name), { name, id: 'abcd', port: 1, nodes: [], simulatedNodes: [], verbosity: 0 })
  await mkdir(storeFolder(home), { recursive: true })
}

export async function withStore<T>(home: string, use: (store: LocalStore) => Promise<T>, file = join(storeFolder(home), 'data.mdb')): Promise<T> {
  const store = await openLmdbStore({ path: file, clock: realClock, log: noLog })
  return use(store).finally(() => store.close())
}

/** The values of the keys in order, and the revision. */
export function contentOf(home: string, file?: string): Promise<string> {
  return withStore(
    home,
    async (store) => {
      const { kvs, revision } = await store.range('', '\0')
      return `${revision}: ${kvs.map(({ key, value }) => `${key}=${value.length}/${value[0]}`).join(' ')}`
    },
    file,
  )
}

/** @returns the name of the file with the store that a restore has replaced */
export async function changeCluster(operation: string, home: string): Promise<string | undefined> {
  if (operation === 'save') await snapshotsIn(home).save(name, savedFile(home), progress)
  else if (operation === 'defragment') await withStore(home, (store) => store.defragment())
  else return (await snapshotsIn(home).restore(savedFile(home), name, { bumpRevision: 0, skipHashCheck: false }, progress)).backup
  return undefined
}
