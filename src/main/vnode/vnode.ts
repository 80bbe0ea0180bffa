/**
 * One node of a local cluster (L5): network, mount, process, host name and IPC namespaces of its own, and a containerd in them. It outlives the
 * processes of Skiff, so containers run on while Skiff restarts; ending its process 1 is a crash of the whole node.
 */
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '#base/clock'
import { capabilities, hasCapability } from '#host/capabilities'
import type { Exec } from '#host/exec'
import { makePrivateDirectory, readTextIfExists, writeFileAtomic } from '#host/files'
import { withLockFile } from '#host/lockFile'
import { allPids, childrenOf, commandOf, isExiting, isRunning, type ProcessRef, signalIfThere, startTimeOf, waitForEnd } from '#host/processes'
import { cgroupsNamed, removeCgroups } from './cgroupFolders.ts'
import { type NodeNetwork, removeNodeNetwork } from './clusterNetwork.ts'
import { containerdConfig, initScript, nodePaths } from './files.ts'

export interface VnodeSpec {
  readonly name: string
  /** The node's folder on the host. */
  readonly dir: string
  readonly network: NodeNetwork
  /** What the node's /etc/resolv.conf says. */
  readonly resolvConf: string
  /** Marks the node's processes as the cluster's. */
  readonly environment: Readonly<Record<string, string>>
}

const forkTimeoutMs = 10_000
const socketTimeoutMs = 20_000
/** Longer than a start takes. */
const lockTimeoutMs = 60_000
const endMs = 10_000
/** A namespace without remains is torn down sooner. */
const tearDownMs = 2000

/**
 * Starts the node unless it runs, and waits for its containerd. Returns its process 1, as the host numbers it. One caller at a time starts it.
 * @param ensureNetwork makes the node's network namespace
 */
export async function ensureVnode(spec: VnodeSpec, clock: Clock, ensureNetwork: () => Promise<void>): Promise<ProcessRef> {
  const refuse = (pid: number | undefined) => new Error(`process ${pid ?? 'unknown'} starts node ${spec.name} and does not end`)
  await makePrivateDirectory(spec.dir)
  return withLockFile(`${spec.dir}.lock`, { clock, timeoutMs: lockTimeoutMs, refuse }, async () => {
    const running = await vnodeProcess(spec.dir)
    if (running) return waitForContainerd(running, clock)
    await finishEnd(spec.dir, clock)
    await ensureNetwork()
    return startVnode(spec, clock)
  })
}

async function startVnode(spec: VnodeSpec, clock: Clock): Promise<ProcessRef> {
  // The node's shell appends to its logs: they keep the mode that they have.
  for (const log of ['init.log', 'containerd.log']) await (await fs.open(path.join(spec.dir, log), 'a', 0o600)).close()
  const lowersOomScores = hasCapability(await fs.readFile('/proc/self/status', 'utf8'), capabilities.sysResource)
  await writeFileAtomic(path.join(spec.dir, 'containerd.toml'), containerdConfig(lowersOomScores), 0o600)
  const script = path.join(spec.dir, 'init.sh')
  await writeFileAtomic(script, initScript(spec.dir, spec.name, spec.resolvConf), 0o700)
  const launcher = spawn(
    'nsenter',
    [`--net=/run/netns/${spec.network.namespace}`, 'unshare', '-m', '-u', '-i', '-p', '--fork', '--kill-child', '--propagation', 'unchanged', 'sh', script],
    { detached: true, stdio: 'ignore', cwd: '/', env: { ...process.env, ...spec.environment } },
  )
  const failed = new Promise<never>((_resolve, reject) => {
    launcher.once('error', reject)
    launcher.once('exit', (code) => reject(new Error(`the node ended with code ${code}`)))
  })
  failed.catch(() => {})
  launcher.unref()
  if (launcher.pid === undefined) await failed
  try {
    const init = await Promise.race([failed, waitForInit(launcher.pid as number, clock)])
    // Before anything else may fail: what runs must be found again.
    await writeFileAtomic(path.join(spec.dir, 'init.pid'), JSON.stringify({ ...init, startedMs: clock.now() }), 0o600)
    return await Promise.race([failed, waitForContainerd(init, clock)])
  } catch (error) {
    const log = await tailOf(path.join(spec.dir, 'init.log'), path.join(spec.dir, 'containerd.log'))
    throw new Error(`node ${spec.name} did not start: ${(error as Error).message}${log ? `\n${log}` : ''}`, { cause: error })
  }
}

/**
 * Waits until the namespaces of an ended node are torn down. Its process 1 hangs while a process of the node is a zombie whose parent, outside of the node, does
 * not reap it: a stopped nsenter. Such parents are killed.
 */
async function finishEnd(dir: string, clock: Clock): Promise<void> {
  const init = await writtenInit(dir)
  if (!init || !(await isExiting(init)) || (await waitForEnd(init, tearDownMs, clock))) return
  await killEntered(init)
  if (await waitForEnd(init, endMs, clock)) return
  throw new Error(`process ${init.pid}, which was process 1 of the node, does not end: a process of the node has a parent that does not reap it`)
}

/** Kills what stays outside of the node as the parent of a process in it. */
async function killEntered(init: ProcessRef): Promise<void> {
  for (const pid of await allPids()) {
    const words = await commandOf(pid)
    if (path.basename(words[0] ?? '') === 'nsenter' && words[1] === '-t' && words[2] === String(init.pid)) signalIfThere(pid, 'SIGKILL')
  }
}

/** The node's process 1, if it runs. */
export async function vnodeProcess(dir: string): Promise<ProcessRef | undefined> {
  const ref = await writtenInit(dir)
  return ref && (await isRunning(ref)) ? ref : undefined
}

/** When the node started, in milliseconds of the clock; 0 for one that an earlier version started. */
export async function vnodeStartedMs(dir: string): Promise<number> {
  return (await writtenInit(dir))?.startedMs ?? 0
}

async function writtenInit(dir: string): Promise<(ProcessRef & { readonly startedMs?: number }) | undefined> {
  const text = await readTextIfExists(path.join(dir, 'init.pid'))
  return text ? JSON.parse(text) : undefined
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
    signalIfThere(init.pid, 'SIGKILL')
    await waitForEnd(init, tearDownMs, clock)
  }
  await finishEnd(dir, clock)
  await fs.rm(path.join(dir, 'init.pid'), { force: true })
  await removeNodeNetwork(exec, network)
  for (const folder of await cgroupsNamed(new RegExp(`^${cgroupRoot}$`))) await removeCgroups(folder, clock)
}

async function waitForInit(launcherPid: number, clock: Clock): Promise<ProcessRef> {
  const deadline = clock.monotonicMs() + forkTimeoutMs
  while (clock.monotonicMs() < deadline) {
    const [pid] = await childrenOf(launcherPid)
    const startTime = pid === undefined ? undefined : await startTimeOf(pid)
    if (pid !== undefined && startTime !== undefined) return { pid, startTime }
    await clock.sleep(10)
  }
  throw new Error(`it had no process 1 within ${forkTimeoutMs / 1000} s`)
}

async function waitForContainerd(init: ProcessRef, clock: Clock): Promise<ProcessRef> {
  const deadline = clock.monotonicMs() + socketTimeoutMs
  while (clock.monotonicMs() < deadline) {
    const there = await fs.stat(containerdSocket(init)).then(
      (stat) => stat.isSocket(),
      () => false,
    )
    if (there) return init
    await clock.sleep(10)
  }
  throw new Error(`its containerd did not answer within ${socketTimeoutMs / 1000} s`)
}

async function tailOf(...files: string[]): Promise<string> {
  const texts = await Promise.all(files.map((file) => readTextIfExists(file)))
  return texts
    .map((text) => (text ?? '').trim().split('\n').slice(-10).join('\n'))
    .filter(Boolean)
    .join('\n')
}
