/**
 * One node of a local cluster (L5): network, mount, process, host name and IPC namespaces of its own, and a containerd in them. It outlives the
 * processes of Skiff, so containers run on while Skiff restarts; ending its process 1 is a crash of the whole node.
 */
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '#base/clock'
import type { Exec } from '#host/exec'
import { makePrivateDirectory, readTextIfExists, writeFileAtomic } from '#host/files'
import { isRunning, type ProcessRef, startTimeOf } from '#host/processes'
import { type NodeNetwork, removeNodeNetwork } from './clusterNetwork.ts'
import { containerdConfig, initScript, nodePaths } from './files.ts'

export interface VnodeSpec {
  readonly name: string
  /** The node's folder on the host. */
  readonly dir: string
  readonly network: NodeNetwork
  /** What the node's /etc/resolv.conf says. */
  readonly resolvConf: string
}

const socketTimeoutMs = 20_000

/** Starts the node unless it runs, and waits for its containerd. Returns its process 1, as the host numbers it. */
export async function ensureVnode(spec: VnodeSpec, clock: Clock): Promise<ProcessRef> {
  const running = await vnodeProcess(spec.dir)
  if (running) return running
  await makePrivateDirectory(spec.dir)
  // The node's shell appends to its logs: they keep the mode that they have.
  for (const log of ['init.log', 'containerd.log']) await (await fs.open(path.join(spec.dir, log), 'a', 0o600)).close()
  await writeFileAtomic(path.join(spec.dir, 'containerd.toml'), containerdConfig(), 0o600)
  const script = path.join(spec.dir, 'init.sh')
  await writeFileAtomic(script, initScript(spec.dir, spec.name, spec.resolvConf), 0o700)
  const launcher = spawn(
    'nsenter',
    [`--net=/run/netns/${spec.network.namespace}`, 'unshare', '-m', '-u', '-i', '-p', '--fork', '--kill-child', '--propagation', 'unchanged', 'sh', script],
    { detached: true, stdio: 'ignore', cwd: '/' },
  )
  const failed = new Promise<never>((_resolve, reject) => {
    launcher.once('error', reject)
    launcher.once('exit', (code) => reject(new Error(`the node ended with code ${code}`)))
  })
  failed.catch(() => {})
  launcher.unref()
  if (launcher.pid === undefined) await failed
  try {
    const init = await Promise.race([failed, waitForContainerd(launcher.pid as number, clock)])
    await writeFileAtomic(path.join(spec.dir, 'init.pid'), JSON.stringify(init), 0o600)
    return init
  } catch (error) {
    const log = await tailOf(path.join(spec.dir, 'init.log'), path.join(spec.dir, 'containerd.log'))
    throw new Error(`node ${spec.name} did not start: ${(error as Error).message}${log ? `\n${log}` : ''}`, { cause: error })
  }
}

/** The node's process 1, if it runs. */
export async function vnodeProcess(dir: string): Promise<ProcessRef | undefined> {
  const text = await readTextIfExists(path.join(dir, 'init.pid'))
  if (!text) return undefined
  const ref = JSON.parse(text) as ProcessRef
  return (await isRunning(ref)) ? ref : undefined
}

/** Words that run a program inside the node, in all its namespaces. */
export function enterVnode(init: ProcessRef): string[] {
  return ['nsenter', '-t', String(init.pid), '-m', '-u', '-i', '-n', '-p', '--']
}

/** Where the node's containerd answers, seen from the host. */
export function containerdSocket(init: ProcessRef): string {
  return `/proc/${init.pid}/root${nodePaths.containerdSocket}`
}

/** Ends the node with everything in it, and removes its network and cgroups. Its folder stays. */
export async function destroyVnode(exec: Exec, dir: string, network: NodeNetwork, cgroupRoot: string, clock: Clock): Promise<void> {
  const init = await vnodeProcess(dir)
  if (init) {
    process.kill(init.pid, 'SIGKILL')
    for (let waited = 0; waited < 10_000 && (await isRunning(init)); waited += 20) await clock.sleep(20)
  }
  await fs.rm(path.join(dir, 'init.pid'), { force: true })
  await removeNodeNetwork(exec, network)
  await removeCgroups(cgroupRoot, clock)
}

/** Removes the cgroup of that name in every hierarchy, deepest first; processes that are just ending get a moment. */
async function removeCgroups(name: string, clock: Clock): Promise<void> {
  for (const hierarchy of await fs.readdir('/sys/fs/cgroup').catch(() => [] as string[])) {
    const root = path.join('/sys/fs/cgroup', hierarchy, name)
    const below = await fs.readdir(root, { recursive: true, withFileTypes: true }).catch(() => undefined)
    if (!below) continue
    const folders = below.filter((entry) => entry.isDirectory()).map((entry) => path.join(entry.parentPath ?? entry.path, entry.name))
    for (const folder of [...folders.sort((a, b) => b.length - a.length), root]) await removeFolder(folder, clock)
  }
}

async function removeFolder(folder: string, clock: Clock): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt++) {
    try {
      await fs.rmdir(folder)
      return
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return
      if (code !== 'EBUSY') throw error
      await clock.sleep(20)
    }
  }
}

async function waitForContainerd(launcherPid: number, clock: Clock): Promise<ProcessRef> {
  const deadline = clock.monotonicMs() + socketTimeoutMs
  while (clock.monotonicMs() < deadline) {
    const pid = await onlyChildOf(launcherPid)
    const startTime = pid === undefined ? undefined : await startTimeOf(pid)
    if (pid !== undefined && startTime !== undefined) {
      const ref = { pid, startTime }
      const there = await fs.stat(containerdSocket(ref)).then(
        (stat) => stat.isSocket(),
        () => false,
      )
      if (there) return ref
    }
    await clock.sleep(10)
  }
  throw new Error(`its containerd did not answer within ${socketTimeoutMs / 1000} s`)
}

async function onlyChildOf(pid: number): Promise<number | undefined> {
  const children = await readTextIfExists(`/proc/${pid}/task/${pid}/children`)
  const first = children?.trim().split(' ')[0]
  return first ? Number(first) : undefined
}

async function tailOf(...files: string[]): Promise<string> {
  const texts = await Promise.all(files.map((file) => readTextIfExists(file)))
  return texts
    .map((text) => (text ?? '').trim().split('\n').slice(-10).join('\n'))
    .filter(Boolean)
    .join('\n')
}
