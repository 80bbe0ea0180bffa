/** Servers of etcd's API to measure, each with its data on the disk: `skiff etcd serve`, and programs of etcd. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { freePort } from '#main/localCluster/freePort'
import { createEtcdAdministration } from '#store/drivers/etcd/administration'
import { skiff } from './localCluster.ts'

export interface StoreServer {
  /** `skiff`, `etcd 3.4.23`. */
  readonly name: string
  readonly host: string
  readonly port: number
  readonly pid: number
  end(): Promise<void>
}

/** Files of a certificate that clients trust as it is. */
export interface ServingFiles {
  readonly cert: string
  readonly key: string
}

const readyTries = 200
const electionMs = 30_000

/** Those that can run here: `etcd` of the host, and the program that SKIFF_BENCH_ETCD names. */
export function etcdPrograms(): readonly string[] {
  const named = process.env.SKIFF_BENCH_ETCD
  const ofHost = ['/usr/bin/etcd', '/usr/local/bin/etcd'].find((file) => existsSync(file))
  return [ofHost, named].flatMap((file) => (file && existsSync(file) ? [file] : []))
}

export function startSkiffStore(dataDir: string, files: ServingFiles): Promise<StoreServer> {
  mkdirSync(dataDir, { recursive: true })
  return startStore('skiff', process.execPath, (url) => [skiff, 'etcd', 'serve', '--v=0', `--data-dir=${dataDir}`, `--listen-client-urls=${url}`], files)
}

/** One member, with the defaults of its release. */
export async function startEtcdStore(program: string, dataDir: string, files: ServingFiles): Promise<StoreServer> {
  const version = /etcd Version: (\S+)/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' }))?.[1]
  const peer = `http://127.0.0.1:${await freePort()}`
  const own = [`--data-dir=${dataDir}`, `--listen-peer-urls=${peer}`, `--initial-advertise-peer-urls=${peer}`, `--initial-cluster=default=${peer}`]
  const args = (url: string) => [...own, `--listen-client-urls=${url}`, `--advertise-client-urls=${url}`, '--log-level=error']
  return startStore(`etcd ${version}`, program, args, files)
}

async function startStore(name: string, program: string, args: (url: string) => readonly string[], { cert, key }: ServingFiles): Promise<StoreServer> {
  const port = await freePort()
  const url = `https://127.0.0.1:${port}`
  const child = spawn(program, [...args(url), `--cert-file=${cert}`, `--key-file=${key}`], { stdio: 'ignore' })
  await untilReady(url, cert)
  return { name, host: '127.0.0.1', port, pid: child.pid ?? 0, end: () => endOf(child) }
}

async function untilReady(url: string, caFile: string): Promise<void> {
  const administration = createEtcdAdministration([url], { ca: readFileSync(caFile, 'utf8') })
  try {
    for (let tries = 0; ; tries++) {
      try {
        await administration.status(url)
        return
      } catch (error) {
        if (tries >= readyTries) throw error
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
  } finally {
    administration.close()
  }
}

async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit')
}

export interface EtcdMembers {
  readonly urls: readonly string[]
  /** Ends the leader at once. @returns a function that starts it again, and waits until it answers */
  killLeader(): Promise<() => Promise<void>>
}

/** Runs `measure` over members with etcd's own times, whose data is on the disk in a folder that is new. */
export async function withEtcdMembers<T>(dir: string, size: number, measure: (members: EtcdMembers) => Promise<T>): Promise<T> {
  const plans: { name: string; url: string; peer: string }[] = []
  for (let at = 0; at < size; at++) plans.push({ name: `m${at}`, url: `http://127.0.0.1:${await freePort()}`, peer: `http://127.0.0.1:${await freePort()}` })
  const initial = plans.map(({ name, peer }) => `${name}=${peer}`).join(',')
  const start = (at: number) => {
    const { name, url, peer } = plans[at] as (typeof plans)[number]
    const urls = [`--listen-client-urls=${url}`, `--advertise-client-urls=${url}`, `--listen-peer-urls=${peer}`, `--initial-advertise-peer-urls=${peer}`]
    const args = [`--name=${name}`, `--data-dir=${path.join(dir, name)}`, `--initial-cluster=${initial}`, '--log-level=error', ...urls]
    return spawn(etcdPrograms()[0] ?? 'etcd', args, { stdio: 'ignore' })
  }
  const processes = plans.map((_, at) => start(at))
  const urls = plans.map(({ url }) => url)
  const administration = createEtcdAdministration(urls, undefined)
  const leads = async (at: number) => (await administration.status(urls[at] ?? '').catch(() => undefined))?.isLeader === true
  const leader = async () => {
    // A member that finds no others accepts connections and answers nothing until a call's own time limit.
    const deadlineMs = performance.now() + electionMs
    while (performance.now() < deadlineMs) {
      for (const at of plans.keys()) if (await leads(at)) return at
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    throw new Error('the members elect no leader')
  }
  try {
    await leader()
    return await measure({
      urls,
      async killLeader() {
        const at = await leader()
        await endOf(processes[at] as ChildProcess)
        return async () => {
          processes[at] = start(at)
          for (let tries = 0; tries < readyTries; tries++) {
            if (await administration.status(urls[at] ?? '').catch(() => undefined)) return
            await new Promise((resolve) => setTimeout(resolve, 100))
          }
          throw new Error('the member does not come back')
        }
      },
    })
  } finally {
    administration.close()
    await Promise.all(processes.map(endOf))
  }
}
