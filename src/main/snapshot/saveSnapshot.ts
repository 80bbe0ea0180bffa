/**
 * Saves the store of a cluster to a file (L5): from the running server, from the file of a stopped one, or from a member of etcd. The file appears under its name
 * when it is complete and on the disk. Upstream: etcd client/v3/snapshot (v3.6).
 */
import type { FileHandle } from 'node:fs/promises'
import { messageOf } from '#base/messageOf'
import { CommandError } from '#cli/exitCodes'
import { openOutput } from '#cli/outputFile'
import { GrpcError } from '#grpc/grpcError'
import { exists } from '#host/files'
import { completePart } from '#host/partFile'
import { targetOf } from '#store/drivers/etcd/member'
import { snapshotOf } from '#store/drivers/etcd/snapshotStream'
import { digestOf, hasTrailer, trailerBytes, writeAll, writeDatabase } from '#store/snapshot/snapshotFile'
import { isStoreError } from '#store/storeError'
import { createConfigFile } from '../apiserver/configFile.ts'
import { openLocalStore, storeFile } from '../apiserver/openStore.ts'
import { serverOptions } from '../apiserver/options/index.ts'
import type { EtcdSettings } from '../apiserver/options/storage.ts'
import { etcdServerArgs } from '../etcd/members.ts'
import type { ProcessTools } from '../layouts/processTools.ts'
import type { ClusterPaths, ClusterState } from '../localCluster/clusterState.ts'
import { runsServer } from '../localCluster/runningServers.ts'
import { loadPki } from '../localCluster/sharedPki.ts'

interface Saving {
  readonly paths: ClusterPaths
  readonly state: ClusterState
  readonly tools: Pick<ProcessTools, 'clock' | 'log'>
}

/** @returns the length of the file in bytes. @throws CommandError */
export async function saveSnapshot(saving: Saving, file: string): Promise<number> {
  try {
    return await completePart(await openOutput(file), async (handle) => {
      await write(handle, saving)
      await checkTrailer(handle)
      return (await handle.stat()).size
    })
  } catch (error) {
    if (isStoreError(error, 'noSpace')) throw new CommandError('unmetPrerequisite', `the disk of ${saving.paths.store} is full`, { cause: error })
    throw error
  }
}

async function write(handle: FileHandle, saving: Saving): Promise<void> {
  const { paths, state } = saving
  const etcd = await etcdOf(saving)
  if (etcd) return writeFromEtcd(handle, state, etcd)
  if (await runsServer(paths, state)) return writeFromServer(handle, paths, state)
  if (!(await exists(storeFile(paths.store)))) throw new CommandError('notFound', `cluster "${state.name}" has no store yet: it was never started`)
  const store = await openLocalStore(paths.store, saving.tools).catch((cause: unknown) => {
    throw new CommandError('internal', `the store of cluster "${state.name}" cannot be opened: ${reasonOf(cause)}`, { cause })
  })
  try {
    const snapshot = await store.snapshot()
    const length = await writeDatabase(handle, snapshot, { alarms: [] })
    await writeAll(handle, await digestOf(handle, length), length)
  } finally {
    await store.close()
  }
}

/** The store's own error has the reason as its cause. */
const reasonOf = (error: unknown) => messageOf(error instanceof Error && error.cause !== undefined ? error.cause : error)

/** The etcd that stores the objects of the cluster; undefined where a file does. */
export async function etcdOf({ tools: { clock }, paths, state }: Saving): Promise<EtcdSettings | undefined> {
  const args = [...(state.etcd ? etcdServerArgs(paths, state.etcd) : []), ...(state.apiServerArgs ?? [])]
  if (!args.some((arg) => arg.startsWith('--etcd-servers'))) return undefined
  if (state.etcd) await loadPki({ clock }, paths, state)
  return (await serverOptions(args, { file: (name) => createConfigFile(name, clock) })).storage.etcd
}

async function writeFromServer(handle: FileHandle, { storeSocket }: ClusterPaths, { name }: ClusterState): Promise<void> {
  try {
    await writePieces(handle, snapshotOf(`unix:${storeSocket}`, undefined, new AbortController().signal))
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error
    throw new CommandError('internal', `the server of cluster "${name}" gave no snapshot: ${error.message}`, {
      hint: `stop the cluster, its file can be read then: skiff stop ${name}`,
      cause: error,
    })
  }
}

/** From the first member that answers. */
async function writeFromEtcd(handle: FileHandle, { name }: ClusterState, { endpoints, tls }: EtcdSettings): Promise<void> {
  const failures: string[] = []
  for (const url of endpoints) {
    const { target, isSecure } = targetOf(url)
    try {
      await handle.truncate(0)
      await writePieces(handle, snapshotOf(target, isSecure ? tls : undefined, new AbortController().signal))
      return
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error
      failures.push(`${url}: ${messageOf(error)}`)
    }
  }
  throw new CommandError('internal', `no member of the etcd of cluster "${name}" gave a snapshot`, {
    hint: `its members must run: skiff start ${name}`,
    details: failures,
  })
}

async function writePieces(handle: FileHandle, pieces: AsyncIterable<Buffer>): Promise<void> {
  let position = 0
  for await (const piece of pieces) {
    await writeAll(handle, piece, position)
    position += piece.length
  }
}

async function checkTrailer(handle: FileHandle): Promise<void> {
  const { size } = await handle.stat()
  const trailer = Buffer.alloc(trailerBytes)
  if (hasTrailer(size)) {
    await handle.read(trailer, 0, trailerBytes, size - trailerBytes)
    if (trailer.equals(await digestOf(handle, size - trailerBytes))) return
  }
  throw new CommandError('internal', 'the snapshot arrived incomplete or changed: its sha256 does not match', { hint: 'run the command again' })
}
