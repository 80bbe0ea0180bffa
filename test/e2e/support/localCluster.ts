/** A whole cluster through the command line, for end-to-end tests: its own home and kubeconfig, deleted at the end, and nothing left behind. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { clusterId } from '#main/localCluster/clusterState'

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

  private constructor(name: string, dir: string) {
    this.name = name
    this.dir = dir
    this.env = { ...process.env, SKIFF_HOME: path.join(dir, 'home'), KUBECONFIG: path.join(dir, 'kubeconfig'), HOME: dir }
  }

  static async start(name: string, flags: readonly string[]): Promise<LocalCluster> {
    const cluster = new LocalCluster(name, fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-e2e-')))
    const up = await cluster.skiff(['up', name, ...flags])
    if (up.code !== 0) {
      await cluster.delete()
      throw new Error(`skiff up failed with ${up.code}:\n${up.stderr}`)
    }
    return cluster
  }

  skiff(args: readonly string[]): Promise<CommandResult> {
    return this.#run(process.execPath, [skiffBin, ...args], 120_000)
  }

  kubectl(args: readonly string[], timeoutMs = 60_000): Promise<CommandResult> {
    return this.#run('kubectl', args, timeoutMs)
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

  /** A kubectl that goes on: `-w`, `-f`, port-forward and their like. Whoever starts it ends it. */
  follow(args: readonly string[]): RunningKubectl {
    return new RunningKubectl(spawn('kubectl', args, { env: this.env, stdio: ['pipe', 'pipe', 'pipe'] }), args)
  }

  async delete(): Promise<void> {
    const { code, stderr } = await this.skiff(['delete', this.name])
    fs.rmSync(this.dir, { recursive: true, force: true })
    if (code !== 0) throw new Error(`skiff delete failed with ${code}: ${stderr}`)
  }

  async #run(file: string, args: readonly string[], timeoutMs: number): Promise<CommandResult> {
    try {
      const { stdout, stderr } = await run(file, [...args], { env: this.env, timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 })
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

/** Asks until the answer is right, or fails with the last one. */
export async function eventually<T>(what: string, timeoutMs: number, ask: () => Promise<T>, right: (answer: T) => boolean): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const answer = await ask()
    if (right(answer)) return answer
    if (Date.now() > deadline)
      throw new Error(`${what} did not happen within ${timeoutMs} ms; last: ${typeof answer === 'string' ? answer : JSON.stringify(answer)}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/**
 * What a cluster could leave on the host: links, namespaces, tables, mounts, cgroups and processes. Below the test runner, which marks its
 * processes, clusters that somebody else runs at the same time are left out.
 */
export function hostTraces(): Record<string, string[]> {
  const processes = fs
    .readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .map((pid) => ({ pid, command: commandOf(pid) }))
    .filter(({ command }) => /containerd|\/pause|skiff (server|node-agent|dialer)|init\.sh/.test(command))
  const others = othersClusters(processes)
  const ours = (trace: string) => !others.some((pattern) => pattern.test(trace))
  // The unified hierarchy itself, and one below it for each of version 1.
  const cgroups = ['/sys/fs/cgroup', ...directoriesIn('/sys/fs/cgroup')].flatMap(directoriesIn)
  const traces = {
    links: outputLines('ip', ['-o', 'link']).map((line) => line.split(': ')[1]?.split('@')[0] ?? ''),
    namespaces: outputLines('ip', ['netns', 'list']),
    tables: outputLines('nft', ['list', 'tables']),
    mounts: readQuietly('/proc/mounts')
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' ')[1] ?? '')
      // ip(8) mounts this when a host makes its first network namespace, whoever makes it, and keeps it; the namespaces below count.
      .filter((mount) => mount !== '/run/netns'),
    cgroups: cgroups.filter((dir) => /skiff|kubepods/.test(path.basename(dir))).sort(),
    processes: processes
      .filter(({ pid }) => lineage(pid).every(ours))
      .map(({ command }) => command)
      .sort(),
  }
  return Object.fromEntries(Object.entries(traces).map(([kind, found]) => [kind, found.filter(ours)]))
}

/** What names the clusters that run here without the mark of our test run: their directory, and their ID in links and cgroups. */
function othersClusters(processes: readonly { pid: string; command: string }[]): RegExp[] {
  const mark = process.env.SKIFF_TEST_RUN
  if (!mark) return []
  return processes.flatMap(({ pid, command }) => {
    const [, home, name] = /skiff server --cluster-dir (\S+)\/clusters\/(\S+)/.exec(command) ?? []
    if (!home || !name || readQuietly(`/proc/${pid}/environ`).includes(`SKIFF_TEST_RUN=${mark}`)) return []
    return [new RegExp(`\\bsk(iff-)?${clusterId(home, name)}|${home.replace(/[^\w/]/g, '\\$&')}/`)]
  })
}

function commandOf(pid: string): string {
  return readQuietly(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim()
}

/** The commands of a process and its ancestors: every process of a cluster descends from one that names the cluster's directory. */
function lineage(pid: string): string[] {
  const commands: string[] = []
  for (let at = pid; Number(at) > 1; at = /\) \S (\d+)/.exec(readQuietly(`/proc/${at}/stat`))?.[1] ?? '0') commands.push(commandOf(at))
  return commands
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

/** What is there now and was not before, by kind; empty when nothing is. */
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
