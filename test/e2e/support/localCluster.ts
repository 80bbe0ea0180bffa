/** A whole cluster through the command line, for end-to-end tests: its own home and kubeconfig, deleted at the end, and nothing left behind. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { clusterId } from '#main/localCluster/clusterState'
import { pollPauseMs } from '../../support/pollPause.ts'

const run = promisify(execFile)
const root = path.resolve(import.meta.dirname, '../../..')
export const skiffBin = path.join(root, 'bin/skiff')

export interface CommandResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Why clusters cannot be started here; false when they can. */
export function obstacleToCluster(real: boolean): string | false {
  if (!fs.existsSync(path.join(root, 'dist/skiff.mjs'))) return 'needs a build: make build'
  if (!kubectlVersion()) return 'needs kubectl'
  if (!real) return false
  if (process.platform !== 'linux') return 'needs Linux'
  if (process.getuid?.() !== 0) return 'needs root'
  return ['containerd', 'runc', 'nft', 'ip'].every((program) => which(program)) ? false : 'needs containerd, runc, nft and ip'
}

export function kubectlVersion(): { major: number; minor: number } | undefined {
  try {
    const text = execFileSync('kubectl', ['version', '--client', '-o', 'json'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    const { clientVersion } = JSON.parse(text) as { clientVersion: { gitVersion: string } }
    const [, major, minor] = /^v(\d+)\.(\d+)/.exec(clientVersion.gitVersion) ?? []
    return { major: Number(major), minor: Number(minor) }
  } catch {
    return undefined
  }
}

function which(program: string): boolean {
  return ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'].some((dir) => fs.existsSync(path.join(dir, program)))
}

export class LocalCluster {
  readonly name: string
  readonly dir: string
  readonly env: NodeJS.ProcessEnv
  readonly #followers: RunningKubectl[] = []
  readonly #enter: () => readonly string[]

  private constructor(name: string, dir: string, enter: () => readonly string[]) {
    this.name = name
    this.#enter = enter
    this.dir = dir
    this.env = { ...process.env, SKIFF_HOME: path.join(dir, 'home'), KUBECONFIG: path.join(dir, 'kubeconfig'), HOME: dir }
  }

  /** A cluster whose directory is in `dir/home/clusters` already. */
  static at(name: string, dir: string): LocalCluster {
    return new LocalCluster(name, dir, () => [])
  }

  /** @param enter words in front of the commands, such as those that enter a network namespace */
  static async start(name: string, flags: readonly string[], enter: readonly string[] | (() => readonly string[]) = []): Promise<LocalCluster> {
    const words = typeof enter === 'function' ? enter : () => enter
    const cluster = new LocalCluster(name, fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-e2e-')), words)
    const up = await cluster.skiff(['up', name, ...flags])
    if (up.code !== 0) {
      await cluster.delete()
      throw new Error(`skiff up failed with ${up.code}:\n${up.stderr}`)
    }
    return cluster
  }

  skiff(args: readonly string[]): Promise<CommandResult> {
    return this.run(process.execPath, [skiffBin, ...args], 120_000)
  }

  kubectl(args: readonly string[], timeoutMs = 60_000): Promise<CommandResult> {
    return this.run('kubectl', args, timeoutMs)
  }

  /** kubectl's output; throws with its error when it fails. */
  async must(args: readonly string[], timeoutMs?: number): Promise<string> {
    const result = await this.kubectl(args, timeoutMs)
    if (result.code !== 0) throw new Error(`kubectl ${args.join(' ')}: exit ${result.code}\n${result.stdout}${result.stderr}`)
    return result.stdout.trim()
  }

  /** kubectl with a text on its standard input. */
  async mustWith(input: string, args: readonly string[]): Promise<string> {
    const child = spawn('kubectl', args, { env: this.env, stdio: ['pipe', 'pipe', 'pipe'] })
    child.stdin.end(input)
    const [stdout, stderr, code] = await finish(child)
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: exit ${code}\n${stdout}${stderr}`)
    return stdout.trim()
  }

  /** A kubectl that keeps running, as with `-w`, `-f` and port-forward. The caller ends it. */
  follow(args: readonly string[]): RunningKubectl {
    const follower = new RunningKubectl(spawn('kubectl', args, { env: this.env, stdio: ['pipe', 'pipe', 'pipe'] }), args)
    this.#followers.push(follower)
    return follower
  }

  async delete(): Promise<void> {
    // A kubectl that still runs would write its cache of discovery into the directory, and so make it again.
    await Promise.all(this.#followers.map((follower) => follower.ended()))
    const { code, stderr } = await this.skiff(['delete', this.name])
    fs.rmSync(this.dir, { recursive: true, force: true })
    if (code !== 0) throw new Error(`skiff delete failed with ${code}: ${stderr}`)
  }

  /** Any program, where the cluster is. */
  async run(file: string, args: readonly string[], timeoutMs = 60_000): Promise<CommandResult> {
    try {
      const [program = '', ...words] = [...this.#enter(), file, ...args]
      const { stdout, stderr } = await run(program, words, { env: this.env, timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 })
      return { code: 0, stdout, stderr }
    } catch (error) {
      const failure = error as { code?: number | string; stdout?: string; stderr?: string; killed?: boolean; message: string }
      const why = failure.killed ? `\ntimed out after ${timeoutMs} ms` : ''
      return { code: typeof failure.code === 'number' ? failure.code : -1, stdout: failure.stdout ?? '', stderr: `${failure.stderr ?? failure.message}${why}` }
    }
  }
}

export class RunningKubectl {
  readonly child: ChildProcess
  readonly #args: readonly string[]
  #text = ''

  constructor(child: ChildProcess, args: readonly string[]) {
    this.child = child
    this.#args = args
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk) => {
        this.#text += chunk
      })
    }
  }
  /** What it has printed so far. */
  get text(): string {
    return this.#text
  }
  /** Waits until what it has printed matches. */
  async until(pattern: RegExp, timeoutMs = 15_000): Promise<RegExpExecArray> {
    const said = async () => this.#text
    await eventually(`${pattern} of kubectl ${this.#args.join(' ')}`, timeoutMs, said, (text) => pattern.test(text))
    return pattern.exec(this.#text) as RegExpExecArray
  }
  end(): void {
    this.child.kill()
  }
  /** Ends it, and waits until it has. */
  async ended(): Promise<void> {
    this.end()
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'exit')
  }
}

function finish(child: ChildProcess): Promise<[string, string, number]> {
  return new Promise((resolve, reject) => {
    let stdout = ''
    let stderr = ''
    child.stdout?.on('data', (chunk) => {
      stdout += chunk
    })
    child.stderr?.on('data', (chunk) => {
      stderr += chunk
    })
    child.once('error', reject)
    child.once('close', (code) => resolve([stdout, stderr, code ?? -1]))
  })
}

/** Most questions start a program, which takes a tenth of a second of processor time or more. */
const [shortestPauseMs, longestPauseMs] = [50, 500]

/** Asks until the answer is right, or fails with the last one. */
export async function eventually<T>(what: string, timeoutMs: number, ask: () => Promise<T>, right: (answer: T) => boolean): Promise<T> {
  const started = Date.now()
  const deadline = started + timeoutMs
  for (;;) {
    const answer = await ask()
    if (right(answer)) return answer
    if (Date.now() > deadline)
      throw new Error(`${what} did not happen within ${timeoutMs} ms; last: ${typeof answer === 'string' ? answer : JSON.stringify(answer)}`)
    await new Promise((resolve) => setTimeout(resolve, pollPauseMs(Date.now() - started, shortestPauseMs, longestPauseMs)))
  }
}

/**
 * What a cluster could leave on the host: links, namespaces, tables, mounts, cgroups and processes. Things of other programs, and of clusters that
 * were not started below this test process, are left out. The test runner marks its processes with SKIFF_TEST_RUN: the run, and in a test process its
 * job too.
 */
export function hostTraces(): Record<string, string[]> {
  const processes = skiffProcesses()
  const others = othersClusters(processes)
  const isOurs = (name: string) => /^sk|skiff|kube/.test(name) && !others.some((pattern) => pattern.test(name))
  // The unified hierarchy itself, and one below it for each of version 1.
  const cgroups = ['/sys/fs/cgroup', ...directoriesIn('/sys/fs/cgroup')].flatMap(directoriesIn)
  return {
    links: outputLines('ip', ['-o', 'link'])
      .map((line) => line.split(': ')[1]?.split('@')[0] ?? '')
      .filter(isOurs),
    namespaces: outputLines('ip', ['netns', 'list']).filter(isOurs),
    tables: outputLines('nft', ['list', 'tables']).filter(isOurs),
    mounts: readQuietly('/proc/mounts')
      .split('\n')
      .map((line) => line.split(' ')[1] ?? '')
      .filter(isOurs),
    cgroups: cgroups.filter((directory) => isOurs(path.basename(directory))).sort(),
    processes: processes
      .filter(({ pid }) => ancestors(pid).some(isMarked))
      .map(({ command }) => command)
      .sort(),
  }
}

interface HostProcess {
  readonly pid: string
  readonly command: string
}

function skiffProcesses(): HostProcess[] {
  return fs
    .readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .map((pid) => ({ pid, command: commandOf(pid) }))
    .filter(({ command }) => /containerd|\/pause|skiff (supervise|server|balancer|node-agent|dialer)|init\.sh/.test(command))
}

/** Without a runner every process of this host counts. */
function isMarked(pid: string): boolean {
  const mark = process.env.SKIFF_TEST_RUN
  return !mark || readQuietly(`/proc/${pid}/environ`).includes(`SKIFF_TEST_RUN=${mark}`)
}

/** Patterns for the names of clusters that another run or user started: their ID stands in links and cgroups, their directory in mounts. */
function othersClusters(processes: readonly HostProcess[]): RegExp[] {
  return processes.flatMap(({ pid, command }) => {
    const [, home, name] = /skiff server --cluster-dir (\S+)\/clusters\/(\S+)/.exec(command) ?? []
    if (!home || !name || isMarked(pid)) return []
    return [new RegExp(`\\bsk(iff-)?${clusterId(home, name)}|${home.replace(/[^\w/]/g, '\\$&')}/`)]
  })
}

function commandOf(pid: string): string {
  return readQuietly(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim()
}

/** A process and its ancestors: containers have environments of their own, but descend from a marked process. */
function ancestors(pid: string): string[] {
  const pids: string[] = []
  for (let at = pid; Number(at) > 1; at = /\) \S (\d+)/.exec(readQuietly(`/proc/${at}/stat`))?.[1] ?? '0') pids.push(at)
  return pids
}

function outputLines(file: string, args: string[]): string[] {
  try {
    return execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
      .split('\n')
      .filter(Boolean)
  } catch {
    return []
  }
}

export function directoriesIn(dir: string): string[] {
  if (!fs.existsSync(dir)) return []
  const entries = fs.readdirSync(dir, { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map((entry) => path.join(dir, entry.name))
}

/** What exists now and did not before, by kind; empty when nothing does. */
export function newTraces(before: Record<string, string[]>): Record<string, string[]> {
  const added = Object.entries(hostTraces()).map(([kind, now]) => [kind, now.filter((trace) => !before[kind]?.includes(trace))] as const)
  return Object.fromEntries(added.filter(([, traces]) => traces.length > 0))
}

function readQuietly(file: string): string {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
