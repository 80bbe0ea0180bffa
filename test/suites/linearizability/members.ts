/**
 * Three members of etcd, each in a network namespace of its own on one bridge and with a small file system of its own; the API servers are in the namespaces of this
 * process. Mounts, links and namespaces end with the processes that hold them.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { until } from '../../support/until.ts'

const size = 3
/** Two segments of the log, of 64 MiB, and the database. */
const diskMegabytes = 160
const addressOf = (at: number) => `10.77.0.${at + 1}`
const urlOf = (at: number) => `http://${addressOf(at)}:2379`
const peerOf = (at: number) => `http://${addressOf(at)}:2380`
const ip = (...args: string[]) => execFileSync('ip', args, { encoding: 'utf8' })

/** `unplug`: the member sees that its link is down. `drop`: it does not, and its packets are lost. */
export const memberFaults = ['kill', 'pause', 'unplug', 'drop', 'fill'] as const
export type MemberFault = (typeof memberFaults)[number]

export interface Members {
  readonly urls: readonly string[]
  /** Begins a fault of a member. @returns a function that ends it */
  fault(at: number, kind: MemberFault): Promise<() => void>
  /** Compacts the history up to the newest revision. Does nothing without a quorum. */
  compact(): Promise<void>
  healthy(): Promise<void>
  stop(): void
}

export async function startMembers(directory: string): Promise<Members> {
  ip('link', 'set', 'lo', 'up')
  ip('link', 'add', 'br0', 'type', 'bridge')
  ip('addr', 'add', '10.77.0.254/24', 'dev', 'br0')
  ip('link', 'set', 'br0', 'up')
  const dataOf = (at: number) => path.join(directory, `m${at}`)
  const holders: ChildProcess[] = []
  for (let at = 0; at < size; at++) {
    holders.push(await holdNamespace(at))
    fs.mkdirSync(dataOf(at), { mode: 0o700 })
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskMegabytes}m,mode=700`, 'tmpfs', dataOf(at)])
  }
  const start = (at: number) => spawn('nsenter', [`--net=/proc/${holders[at]?.pid}/ns/net`, '--', 'etcd', ...flagsOf(at, dataOf(at))], { stdio: 'ignore' })
  const processes = holders.map((_, at) => start(at))
  const processOf = (at: number) => processes[at] as ChildProcess
  const hasEnded = (at: number) => processOf(at).exitCode !== null || processOf(at).signalCode !== null
  const restart = (at: number) => {
    processes[at] = start(at)
  }
  const begin: Readonly<Record<MemberFault, (at: number) => Promise<() => void>>> = {
    async kill(at) {
      if (!hasEnded(at)) {
        const ended = once(processOf(at), 'exit')
        processOf(at).kill('SIGKILL')
        await ended
      }
      return () => restart(at)
    },
    async pause(at) {
      processOf(at).kill('SIGSTOP')
      return () => void processOf(at).kill('SIGCONT')
    },
    async unplug(at) {
      ip('link', 'set', `member${at}`, 'down')
      return () => void ip('link', 'set', `member${at}`, 'up')
    },
    async drop(at) {
      ip('link', 'set', `member${at}`, 'type', 'bridge_slave', 'state', '0')
      return () => void ip('link', 'set', `member${at}`, 'type', 'bridge_slave', 'state', '3')
    },
    /** The member ends when it cannot write; with space again, it is started again. */
    async fill(at) {
      const filler = path.join(dataOf(at), 'filler')
      fillDisk(filler)
      return () => {
        fs.rmSync(filler)
        if (hasEnded(at)) restart(at)
      }
    },
  }
  return {
    urls: holders.map((_, at) => urlOf(at)),
    fault: (at, kind) => begin[kind](at),
    compact: () => compact(holders.map((_, at) => urlOf(at))).catch(() => {}),
    async healthy() {
      const all = async () => (await Promise.all(holders.map((_, at) => isHealthy(at)))).every(Boolean)
      await until('all members are healthy', all, { timeoutMs: 60_000 })
    },
    stop() {
      for (const child of [...processes, ...holders]) child.kill('SIGKILL')
      for (const at of holders.keys()) execFileSync('umount', ['--lazy', dataOf(at)])
    },
  }
}

/** A process whose network namespace is linked with the bridge. */
async function holdNamespace(at: number): Promise<ChildProcess> {
  const holder = spawn('unshare', ['-n', 'sleep', 'infinity'], { stdio: 'ignore' })
  const namespaceOf = (pid: number | string) => fs.readlinkSync(`/proc/${pid}/ns/net`)
  await until('the namespace is there', () => namespaceOf(holder.pid ?? '') !== namespaceOf('self'))
  const [outside, pid] = [`member${at}`, String(holder.pid)]
  const inside = (...args: string[]) => execFileSync('nsenter', [`--net=/proc/${pid}/ns/net`, '--', 'ip', ...args])
  // Known neighbours are not asked for: packets to one that is cut off are lost, and no error tells.
  const mac = `02:00:00:00:77:0${at + 1}`
  ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', 'eth0', 'address', mac, 'netns', pid)
  ip('link', 'set', outside, 'master', 'br0', 'up')
  ip('neigh', 'replace', addressOf(at), 'lladdr', mac, 'dev', 'br0', 'nud', 'permanent')
  inside('addr', 'add', `${addressOf(at)}/24`, 'dev', 'eth0')
  for (const link of ['lo', 'eth0']) inside('link', 'set', link, 'up')
  return holder
}

function flagsOf(at: number, data: string): string[] {
  const own = [`--name=m${at}`, `--data-dir=${path.join(data, 'data')}`, `--listen-client-urls=${urlOf(at)}`, `--advertise-client-urls=${urlOf(at)}`]
  const initial = Array.from({ length: size }, (_, i) => `m${i}=${peerOf(i)}`).join(',')
  const peers = [`--listen-peer-urls=${peerOf(at)}`, `--initial-advertise-peer-urls=${peerOf(at)}`, `--initial-cluster=${initial}`]
  return [...own, ...peers, '--heartbeat-interval=50', '--election-timeout=500', '--log-level=error']
}

function fillDisk(file: string): void {
  const descriptor = fs.openSync(file, 'w')
  const pieces = [1 << 20, 4096].map((bytes) => Buffer.alloc(bytes))
  for (const piece of pieces) {
    try {
      while (fs.writeSync(descriptor, piece) === piece.length);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
  fs.closeSync(descriptor)
}

async function compact(urls: readonly string[]): Promise<void> {
  const ctl = async (...args: string[]) => {
    const all = ['--endpoints', urls.join(','), '--command-timeout=2s', ...args]
    return (await promisify(execFile)('etcdctl', all, { env: { ...process.env, ETCDCTL_API: '3' }, timeout: 5000 })).stdout
  }
  const { header } = JSON.parse(await ctl('get', '/none', '-w', 'json'))
  await ctl('compact', String(header.revision))
}

function isHealthy(at: number): Promise<boolean> {
  return fetch(`${urlOf(at)}/health`, { signal: AbortSignal.timeout(2000) }).then(
    ({ status }) => status === 200,
    () => false,
  )
}
