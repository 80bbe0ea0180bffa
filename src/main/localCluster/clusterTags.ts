/**
 * The register of this host's clusters with real nodes, of any home (L5): one file for each, named by the cluster's id, with the path of its directory. Names of
 * interfaces and cgroups have no room for more than the id, which two clusters may share: the path in the file says which cluster has it. Only root can write it.
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import { CommandError } from '#cli/exitCodes'
import { exists, isMissing, listIfExists, readTextIfExists, writeFileAtomic } from '#host/files'
import { type ClusterPaths, clusterId, clusterPaths } from './clusterState.ts'

/** Identifies a cluster on this host. */
export interface ClusterMark {
  readonly name: string
  readonly id: string
  readonly dir: string
}

/** The directory is emptied at each boot, as are the things that the files register. */
export const tagDirectory = '/run/skiff/clusters'

/** @param id the one in the cluster's description, when that is there */
export function markOf(home: string, name: string, id = clusterId(home, name)): ClusterMark {
  return { name, id, dir: clusterPaths(home, name).dir }
}

/** The mark of a directory that this program could have made; undefined for any other. */
export function markOfDirectory(dir: string, id?: string): ClusterMark | undefined {
  const isOurs = path.isAbsolute(dir) && path.normalize(dir) === dir && path.basename(path.dirname(dir)) === 'clusters'
  return isOurs ? markOf(path.resolve(dir, '../..'), path.basename(dir), id) : undefined
}

/** @throws CommandError conflict when another cluster, which is there, has the id */
export async function writeTag(mark: ClusterMark, directory = tagDirectory): Promise<void> {
  await refuseTakenId(mark, directory)
  await writeFileAtomic(path.join(directory, mark.id), `${mark.dir}\n`, 0o644)
}

/** @throws CommandError conflict when another cluster, which is there, has the id */
export async function refuseTakenId({ name, id, dir }: ClusterMark, directory = tagDirectory): Promise<void> {
  const other = await tagged(directory, id)
  if (other !== undefined && other !== dir && (await isDescribed(other))) {
    throw new CommandError('conflict', `the cluster in ${other} has the id ${id} on this host, which cluster "${name}" would have too`, {
      hint: 'choose another name, or delete one of the two',
    })
  }
}

export async function removeTag({ id, dir }: ClusterMark, directory = tagDirectory): Promise<void> {
  if ((await tagged(directory, id)) === dir) await fs.rm(path.join(directory, id), { force: true })
}

/** True when the register names the cluster's directory under its id: interfaces, namespaces and cgroups with the id are the cluster's. */
export async function ownsId({ id, dir }: ClusterMark, directory = tagDirectory): Promise<boolean> {
  return (await tagged(directory, id)) === dir
}

export async function taggedMarks(directory = tagDirectory): Promise<ClusterMark[]> {
  const ids = (await listIfExists(directory)).filter((id) => /^[0-9a-f]{4}$/.test(id))
  const marks = await Promise.all(ids.map(async (id) => markOfDirectory((await tagged(directory, id)) ?? '', id)))
  return marks.filter((mark) => mark !== undefined)
}

async function tagged(directory: string, id: string): Promise<string | undefined> {
  return (await readTextIfExists(path.join(directory, id)))?.trim()
}

/** True when the directory holds a cluster, or when that cannot be found out, as on a disk that does not answer. */
export async function isDescribed(dir: string): Promise<boolean> {
  return fs.access(path.join(dir, 'cluster.json')).then(
    () => true,
    (error: unknown) => !isMissing(error),
  )
}

/** For a directory without a description: a snapshot was restored into a new cluster, which was never started. It is the only copy there may be. */
export function isOnlyRestored({ store }: ClusterPaths): Promise<boolean> {
  return exists(store)
}
