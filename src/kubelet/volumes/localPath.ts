/**
 * The directories behind volumes of the local-path provisioner (L3): created when a pod first mounts the volume, removed when the Node is annotated. Both only
 * touch direct children of one directory of the node that no container can write to. api/helpers/localPath.ts is the protocol.
 */
import { constants } from 'node:fs'
import { lstat, mkdir, open, rename, rm, writeFile } from 'node:fs/promises'
import type { PersistentVolume } from '#api/gen/types/core.v1'
import { isLocalPathName, isLocalPathVolume, localPathDirectory } from '#api/helpers/localPath'
import type { Frozen } from '#api/machinery/meta'
import { isMissing, listIfExists, makeDirectory } from '#host/files'
import type { KubeletHost } from '../core/host.ts'
import { unmountIfMounted } from './podMounts.ts'

interface LocalPaths {
  readonly host: KubeletHost
  /** The kubelet's root directory. */
  readonly rootDirectory: string
}

/** The directory of a volume's name in a pod's directory, as the plugin of local volumes mounts it. */
const mountedAs = (podUid: string, volume: string) => `pods/${podUid}/volumes/kubernetes.io~local-volume/${volume}`

function pathOf(rootDirectory: string, volume: string): string {
  return `${rootDirectory}/${localPathDirectory}/${volume}`
}

/** Whether the kubelet creates the volume's directory: the provisioner made the volume, and its path is the one that this node has for it. */
export function isOwnLocalPath(rootDirectory: string, volume: Frozen<PersistentVolume> | undefined): boolean {
  return volume !== undefined && isLocalPathVolume(volume) && volume.spec.local?.path === pathOf(rootDirectory, volume.metadata.name ?? '')
}

/**
 * Creates the directory, writable for all users, unless it is there.
 * @throws Error when anything but a directory is there, or this node has removed the directory with its data
 */
export async function makeLocalPath({ host, rootDirectory }: LocalPaths, volume: string): Promise<void> {
  const path = host.path(pathOf(rootDirectory, volume))
  const found = await statsOf(path)
  if (found && !found.isDirectory()) throw new Error(`${pathOf(rootDirectory, volume)} is not a directory`)
  if (found) return
  const removal = await statsOf(removalRecord({ host, rootDirectory }, volume))
  // A snapshot of the store can bring the object back, but not the data: a pod must not take an empty directory for them.
  if (removal)
    throw new Error(`${pathOf(rootDirectory, volume)} was removed with its data at ${removal.mtime.toISOString()}: delete the claim for a new volume`)
  await makeDirectory(host.path(`${rootDirectory}/${localPathDirectory}`), 0o750)
  // Renamed once it has its mode: the process's mask does not count, and a kubelet that ends in between starts over.
  const unfinished = `${path}.new`
  await mkdir(unfinished).catch((error: NodeJS.ErrnoException) => (error.code === 'EEXIST' ? undefined : Promise.reject(error)))
  const directory = await open(unfinished, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    await directory.chmod(0o777)
  } finally {
    await directory.close()
  }
  await rename(unfinished, path)
}

export interface RemovalSlice {
  readonly signal: AbortSignal
  readonly sliceMs: number
  /** Keeps pods from mounting and unmounting the volume meanwhile. */
  exclusive<T>(work: () => Promise<T>): Promise<T>
}

/**
 * Removes the directory with its content, as far as the time allows. Idempotent. The removal is recorded, and the directory renamed: from then on no pod
 * can mount the volume, and a later kubelet finds an unfinished removal by the new name.
 * @returns inUse while a pod's directory has the volume; unfinished when the time is over
 * @throws Error when something cannot be removed
 */
export async function removeLocalPath(paths: LocalPaths, volume: string, slice: RemovalSlice): Promise<'removed' | 'unfinished' | 'inUse'> {
  const isInUse = await slice.exclusive(async () => {
    const isMounted = await isMountedByPod(paths, volume)
    if (!isMounted) await retire(paths, volume)
    return isMounted
  })
  if (!(await deleteRetired(paths, volume, slice))) return 'unfinished'
  if (isInUse) return 'inUse'
  // A pod that waited for its turn has made it again, or an earlier one was still in the way.
  const isThere = await slice.exclusive(async () => statsOf(paths.host.path(pathOf(paths.rootDirectory, volume))))
  return isThere ? 'unfinished' : 'removed'
}

/** Volumes whose renamed directories are still there. */
export async function retiredLocalPaths({ host, rootDirectory }: LocalPaths): Promise<string[]> {
  const names = await listIfExists(host.path(`${rootDirectory}/${localPathDirectory}`))
  return names
    .filter((name) => name.endsWith(retiredSuffix))
    .map((name) => name.slice(0, -retiredSuffix.length))
    .filter(isLocalPathName)
}

/** No volume's name has a dot. */
const retiredSuffix = '.gone'

async function isMountedByPod({ host, rootDirectory }: LocalPaths, volume: string): Promise<boolean> {
  for (const uid of await listIfExists(host.path(`${rootDirectory}/pods`))) {
    if (await statsOf(host.path(`${rootDirectory}/${mountedAs(uid, volume)}`))) return true
  }
  return false
}

/** Renames the directory, unless an earlier one of that name is still being removed. */
async function retire({ host, rootDirectory }: LocalPaths, volume: string): Promise<void> {
  const path = pathOf(rootDirectory, volume)
  if ((await statsOf(host.path(`${path}${retiredSuffix}`))) || !(await statsOf(host.path(path)))) return
  // The mount point of a mount cannot be renamed.
  await unmountIfMounted(host, path)
  await recordRemoval({ host, rootDirectory }, volume)
  await rename(host.path(path), host.path(`${path}${retiredSuffix}`))
}

/** An empty file for each volume whose directory this node has removed. */
const recordDirectory = 'local-path-removed'
/** The oldest are forgotten: a tenant can create and delete volumes without end. */
const mostRecords = 10_000
const forgottenAtOnce = 1_000

function removalRecord({ host, rootDirectory }: LocalPaths, volume: string): string {
  return host.path(`${rootDirectory}/${recordDirectory}/${volume}`)
}

async function recordRemoval(paths: LocalPaths, volume: string): Promise<void> {
  const folder = paths.host.path(`${paths.rootDirectory}/${recordDirectory}`)
  await makeDirectory(folder, 0o750)
  await writeFile(removalRecord(paths, volume), '')
  const names = await listIfExists(folder)
  if (names.length <= mostRecords) return
  const records = await Promise.all(names.map(async (name) => ({ name, atMs: (await statsOf(`${folder}/${name}`))?.mtimeMs ?? 0 })))
  const oldest = records.sort((one, other) => one.atMs - other.atMs).slice(0, forgottenAtOnce)
  for (const { name } of oldest) await rm(`${folder}/${name}`, { force: true })
}

/** @returns whether nothing is left */
async function deleteRetired({ host, rootDirectory }: LocalPaths, volume: string, { signal, sliceMs }: RemovalSlice): Promise<boolean> {
  const known = pathOf(rootDirectory, volume)
  const path = `${known}${retiredSuffix}`
  if (!(await statsOf(host.path(path)))) return true
  // A privileged container can leave mounts inside, through which the removal would reach other files.
  await unmountIfMounted(host, path)
  // rm opens each directory without following links, so that a process inside cannot lead it elsewhere, and a large tree is not this process's work.
  const options = { signal, timeoutMs: sliceMs, maxOutputBytes: maxComplaintBytes }
  const { code, stderr, timedOut } = await host.exec.run('rm', ['-rf', '--one-file-system', '--', host.path(path)], options)
  if (timedOut) return false
  if (code !== 0) throw new Error(`failed to remove ${known}: ${stderr.trim().split('\n')[0]?.slice(0, maxComplaintLength) || `rm ended with ${code}`}`)
  return true
}

const maxComplaintBytes = 65_536
const maxComplaintLength = 500

async function statsOf(path: string) {
  return lstat(path).catch((error: unknown) => {
    if (!isMissing(error)) throw error
    return undefined
  })
}
