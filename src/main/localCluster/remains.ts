/**
 * Finds and removes everything that a cluster has on the host (L5) by its marks, without the cluster's own description: processes by a variable of their
 * environment, interfaces, namespaces and cgroups by the cluster's id in their names, mounts by the cluster's directory. What has no mark is left alone. A
 * container can set the variable, but cannot leave its namespaces, so its processes are not found.
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { check, type Exec, ExecError } from '#host/exec'
import { exists, listIfExists } from '#host/files'
import { createMounter } from '#host/mounts'
import {
  allPids,
  commandOf,
  isIn,
  isRunning,
  namespaceOf,
  ownNamespaces,
  type ProcessRef,
  signalIfThere,
  startTimeOf,
  variableOf,
  waitForEnd,
} from '#host/processes'
import { cgroupsNamed, removeCgroups } from '../vnode/cgroupFolders.ts'
import { markVariable } from './clusterState.ts'
import { type ClusterMark, isDescribed, markOfDirectory, ownsId, tagDirectory, taggedMarks } from './clusterTags.ts'

export interface Remains {
  readonly processes: readonly (ProcessRef & { readonly command: string })[]
  readonly mounts: readonly string[]
  readonly namespaces: readonly string[]
  readonly links: readonly string[]
  /** Over files in the cluster's directory: storage drivers of its nodes opened them, and they outlive the nodes. */
  readonly loops: readonly string[]
  readonly cgroups: readonly string[]
  /** What could not be looked at, with the reason. */
  readonly unread: readonly string[]
}

interface RemainsTools {
  readonly clock: Clock
  readonly exec: Exec
}

/** Places of the host; tests have others. */
export interface HostPlaces {
  readonly tags: string
  readonly namespaces: string
}

const host: HostPlaces = { tags: tagDirectory, namespaces: '/run/netns' }
const endMs = 5000

/** The clusters of any home that a tag or a process of this host names and whose description is gone. */
export async function goneClusters(places = host): Promise<ClusterMark[]> {
  const own = await ownNamespaces()
  const ofProcesses = await Promise.all((await allPids()).map(async (pid) => ((await isIn(own, pid)) ? variableOf(pid, markVariable) : undefined)))
  const marks = [...ofProcesses.map((dir) => markOfDirectory(dir ?? '')), ...(await taggedMarks(places.tags))].filter((mark) => mark !== undefined)
  const gone = await Promise.all(marks.map(async (mark) => ((await isDescribed(mark.dir)) ? undefined : mark)))
  // Marks of tags come last and win: their id is the one that the cluster used.
  return [...new Map(gone.filter((mark) => mark !== undefined).map((mark) => [mark.dir, mark])).values()]
}

export async function findRemains({ exec }: RemainsTools, mark: ClusterMark, places = host): Promise<Remains> {
  const { id, dir } = mark
  if (!(await ownsId(mark, places.tags))) {
    return { processes: await markedProcesses(dir, new Set()), mounts: [], namespaces: [], links: [], loops: [], cgroups: [], unread: [] }
  }
  const unread: string[] = []
  const read = async <T>(what: string, list: () => Promise<readonly T[]>): Promise<readonly T[]> => {
    try {
      return await list()
    } catch (error) {
      unread.push(`${what}: ${messageOf(error)}`)
      return []
    }
  }
  const namespaces = await read('network namespaces', () => matching(listIfExists(places.namespaces), new RegExp(`^skiff-${id}-(\\d+|api)$`)))
  return {
    processes: await read('processes', async () => markedProcesses(dir, await networksOf(namespaces, places))),
    mounts: await read('mounts', async () =>
      (await createMounter(exec).list()).map(({ mountPoint }) => mountPoint).filter((place) => place.startsWith(`${dir}/`)),
    ),
    namespaces,
    links: await read('interfaces', () => matching(linkNames(exec), new RegExp(`^(skiff-${id}|sk${id}(n\\d+|api))$`))),
    loops: await read('loop devices', () => loopsBelow(exec, dir)),
    cgroups: await read('cgroups', () => cgroupsNamed(new RegExp(`^skiff-${id}-\\d+$`))),
    unread,
  }
}

interface LoopDevice {
  readonly name: string
  readonly 'back-ino': number
  readonly 'back-maj:min': string
}

/** Paths that the kernel has are those of the nodes, so files are compared by their numbers. */
async function loopsBelow(exec: Exec, dir: string): Promise<string[]> {
  const { code, stdout } = await exec.run('losetup', ['--list', '--json', '--output', 'NAME,BACK-INO,BACK-MAJ:MIN'])
  if (code !== 0 || stdout.trim() === '' || !(await exists(dir))) return []
  const { dev } = await fs.stat(dir)
  const device = `${(dev >> 8) & 0xfff}:${(dev & 0xff) | ((dev >> 12) & 0xfff00)}`
  const devices = (JSON.parse(stdout) as { loopdevices: readonly LoopDevice[] }).loopdevices.filter((one) => one['back-maj:min'].trim() === device)
  if (devices.length === 0) return []
  const conditions = devices.flatMap((one, index) => [...(index > 0 ? ['-o'] : []), '-inum', String(one['back-ino'])])
  const found = await check(exec, 'find', [dir, '-xdev', '-type', 'f', '(', ...conditions, ')', '-printf', '%i\\n'])
  const inodes = new Set(found.trim().split('\n'))
  return devices.filter((one) => inodes.has(String(one['back-ino']))).map(({ name }) => name)
}

/** The network namespaces as processes show theirs. */
async function networksOf(names: readonly string[], places: HostPlaces): Promise<ReadonlySet<string>> {
  return new Set(await Promise.all(names.map(async (name) => `net:[${(await fs.stat(path.join(places.namespaces, name))).ino}]`)))
}

async function matching(names: Promise<readonly string[]>, pattern: RegExp): Promise<string[]> {
  return (await names).filter((name) => pattern.test(name))
}

async function linkNames(exec: Exec): Promise<string[]> {
  const args = ['-json', 'link', 'show']
  const shown = await exec.run('ip', args)
  if (shown.code !== 0) throw new ExecError('ip', args, shown)
  return (JSON.parse(shown.stdout || '[]') as { readonly ifname: string }[]).map(({ ifname }) => ifname)
}

/** @param networks the cluster's network namespaces: its nodes have other mount namespaces than the host */
async function markedProcesses(dir: string, networks: ReadonlySet<string>): Promise<Remains['processes']> {
  const own = await ownNamespaces()
  const found = await Promise.all(
    (await allPids()).map(async (pid) => {
      if (pid === process.pid || (await variableOf(pid, markVariable)) !== dir) return undefined
      const isInNode = networks.has((await namespaceOf(pid, 'net')) ?? '')
      if (!isInNode && !(await isIn(own, pid))) return undefined
      const startTime = await startTimeOf(pid)
      return startTime === undefined ? undefined : { pid, startTime, command: (await commandOf(pid)).join(' ') }
    }),
  )
  return found.filter((one) => one !== undefined)
}

/** One line each. */
export function describeRemains({ processes, mounts, namespaces, links, loops, cgroups }: Remains): string[] {
  return [
    ...processes.map(({ pid, command }) => `process ${pid}: ${command.slice(0, mostCharacters)}`),
    ...mounts.map((place) => `mount ${place}`),
    ...namespaces.map((name) => `network namespace ${name}`),
    ...links.map((name) => `interface ${name}`),
    ...loops.map((name) => `loop device ${name}`),
    ...cgroups.map((folder) => `cgroup ${folder}`),
  ]
}

const mostCharacters = 120

/**
 * Removes what findRemains() has found, and looks again. Continues after a step that fails.
 * @returns what is left, or may be left because it could not be looked at, one line each
 */
export async function removeRemains(tools: RemainsTools, mark: ClusterMark, found: Remains, places = host): Promise<string[]> {
  const failures = await removeFound(tools, mark, found)
  const left = describeRemains(found).length === 0 ? found : await findRemains(tools, mark, places)
  const lines = describeRemains(left).map((line) => `${line} is still there`)
  return [...left.unread.map((line) => `not looked at: ${line}`), ...lines, ...(lines.length === 0 ? [] : failures)]
}

/** Kills the processes first: they hold the rest, and some start others again. @returns what failed */
async function removeFound(
  { clock, exec }: RemainsTools,
  mark: ClusterMark,
  { processes, mounts, namespaces, links, loops, cgroups }: Remains,
): Promise<string[]> {
  const failures: string[] = []
  const attempt = async (work: () => Promise<unknown>) => {
    await work().catch((error: unknown) => failures.push(messageOf(error)))
  }
  // A pid may have become another program's since.
  for (const one of processes) await attempt(async () => ((await isRunning(one)) ? signalIfThere(one.pid, 'SIGKILL') : undefined))
  await Promise.all(processes.map((one) => waitForEnd(one, endMs, clock)))
  // The deepest first.
  for (const place of [...mounts].sort((a, b) => b.length - a.length)) await attempt(() => createMounter(exec).unmount(place, { lazy: true }))
  // A device may have become another program's since.
  for (const name of loops)
    await attempt(async () => ((await loopsBelow(exec, mark.dir)).includes(name) ? check(exec, 'losetup', ['--detach', name]) : undefined))
  for (const name of links) await attempt(() => removeNamed(exec, 'link', name))
  for (const name of namespaces) await attempt(() => removeNamed(exec, 'netns', name))
  for (const folder of cgroups) await attempt(() => removeCgroups(folder, clock))
  return failures
}

async function removeNamed(exec: Exec, object: 'link' | 'netns', name: string): Promise<void> {
  const args = [object, 'del', name]
  const result = await exec.run('ip', args)
  // The other end of a pair goes with the first, and an interface goes with its namespace.
  if (result.code !== 0 && !/cannot find|no such/i.test(result.stderr)) throw new ExecError('ip', args, result)
}
