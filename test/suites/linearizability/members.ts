/**
 * Three members of etcd, each in a network namespace of its own on one bridge; the API servers are in the namespace of this process. A member can be killed, paused
 * and cut off from the network, where its connections get no answer and no end. The namespaces end with the processes that hold them.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readlinkSync } from 'node:fs'
import path from 'node:path'
import { until } from '../../support/until.ts'

const size = 3
const addressOf = (at: number) => `10.77.0.${at + 1}`
const urlOf = (at: number) => `http://${addressOf(at)}:2379`
const peerOf = (at: number) => `http://${addressOf(at)}:2380`
const ip = (...args: string[]) => execFileSync('ip', args)

export type Fault = 'kill' | 'pause' | 'cut'

export interface Members {
  readonly urls: readonly string[]
  /** Begins a fault of a member. @returns a function that ends it */
  fault(at: number, kind: Fault): Promise<() => void>
  healthy(): Promise<void>
  stop(): void
}

export async function startMembers(directory: string): Promise<Members> {
  ip('link', 'set', 'lo', 'up')
  ip('link', 'add', 'br0', 'type', 'bridge')
  ip('addr', 'add', '10.77.0.254/24', 'dev', 'br0')
  ip('link', 'set', 'br0', 'up')
  const holders: ChildProcess[] = []
  for (let at = 0; at < size; at++) holders.push(await holdNamespace(at))
  const start = (at: number) => spawn('nsenter', [`--net=/proc/${holders[at]?.pid}/ns/net`, '--', 'etcd', ...flagsOf(at, directory)], { stdio: 'ignore' })
  const processes = holders.map((_, at) => start(at))
  const processOf = (at: number) => processes[at] as ChildProcess
  return {
    urls: holders.map((_, at) => urlOf(at)),
    async fault(at, kind) {
      if (kind === 'kill') {
        const ended = once(processOf(at), 'exit')
        processOf(at).kill('SIGKILL')
        await ended
        return () => {
          processes[at] = start(at)
        }
      }
      if (kind === 'pause') {
        processOf(at).kill('SIGSTOP')
        return () => processOf(at).kill('SIGCONT')
      }
      ip('link', 'set', `member${at}`, 'down')
      return () => ip('link', 'set', `member${at}`, 'up')
    },
    healthy: () =>
      until('all members are healthy', async () => (await Promise.all(holders.map((_, at) => isHealthy(at)))).every(Boolean), { timeoutMs: 60_000 }).then(
        () => {},
      ),
    stop() {
      for (const child of [...processes, ...holders]) child.kill('SIGKILL')
    },
  }
}

/** A process whose network namespace is linked with the bridge. */
async function holdNamespace(at: number): Promise<ChildProcess> {
  const holder = spawn('unshare', ['-n', 'sleep', 'infinity'], { stdio: 'ignore' })
  const namespaceOf = (pid: number | string) => readlinkSync(`/proc/${pid}/ns/net`)
  await until('the namespace is there', () => namespaceOf(holder.pid ?? '') !== namespaceOf('self'))
  const [outside, pid] = [`member${at}`, String(holder.pid)]
  const inside = (...args: string[]) => execFileSync('nsenter', [`--net=/proc/${pid}/ns/net`, '--', 'ip', ...args])
  ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', pid)
  ip('link', 'set', outside, 'master', 'br0', 'up')
  inside('addr', 'add', `${addressOf(at)}/24`, 'dev', 'eth0')
  for (const link of ['lo', 'eth0']) inside('link', 'set', link, 'up')
  return holder
}

function flagsOf(at: number, directory: string): string[] {
  const own = [`--name=m${at}`, `--data-dir=${path.join(directory, `m${at}`)}`, `--listen-client-urls=${urlOf(at)}`, `--advertise-client-urls=${urlOf(at)}`]
  const initial = Array.from({ length: size }, (_, i) => `m${i}=${peerOf(i)}`).join(',')
  const peers = [`--listen-peer-urls=${peerOf(at)}`, `--initial-advertise-peer-urls=${peerOf(at)}`, `--initial-cluster=${initial}`]
  return [...own, ...peers, '--heartbeat-interval=50', '--election-timeout=500', '--log-level=error']
}

function isHealthy(at: number): Promise<boolean> {
  return fetch(`${urlOf(at)}/health`).then(
    ({ status }) => status === 200,
    () => false,
  )
}
