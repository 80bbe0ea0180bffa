/** Real etcd servers for tests: members on loopback, with their data in memory. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import http from 'node:http'
import https from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { missingProgram } from './testPackages.ts'
import { until } from './until.ts'

/**
 * The reason why tests over etcd cannot run here; false when they can.
 * @throws Error where `make test` installs etcd, so that tests are not skipped there unnoticed
 */
export function obstacleToEtcd(): string | false {
  return missingProgram('etcd', 'etcd-server')
}

export interface EtcdMember {
  readonly url: string
  /** The present process; another one after a restart. */
  process: ChildProcess
  /** Ends it at once, as a power cut does. */
  kill(): Promise<void>
  /** Starts it again over its data; it may not be healthy yet. @param more flags of etcd, which win */
  restart(more?: readonly string[]): void
}

export interface EtcdCluster {
  readonly members: readonly EtcdMember[]
  readonly urls: readonly string[]
  stop(): Promise<void>
}

export type EtcdServer = EtcdMember & Pick<EtcdCluster, 'stop'>

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

/** Certificates for TLS to clients: the server's as files, the client's as PEM. */
export interface EtcdTls {
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string }
  readonly client: { readonly ca: string; readonly cert: string; readonly key: string }
}

/** One member. @param data the folder of a restored member `m0` */
export async function startEtcd(tls?: EtcdTls, data?: string): Promise<EtcdServer> {
  const { members, stop } = await startEtcdCluster(1, tls, data)
  return Object.assign(members[0] as EtcdMember, { stop })
}

/** Elections take a tenth of a second, so that a new leader is there soon. @param more flags of etcd, which win */
export async function startEtcdCluster(size: number, tls?: EtcdTls, data?: string, more: readonly string[] = []): Promise<EtcdCluster> {
  const directory = await mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'skiff-etcd-'))
  const plans: { name: string; url: string; peerUrl: string }[] = []
  for (let at = 0; at < size; at++) {
    plans.push({ name: `m${at}`, url: `${tls ? 'https' : 'http'}://127.0.0.1:${await freePort()}`, peerUrl: `http://127.0.0.1:${await freePort()}` })
  }
  const flags = tls ? ['--client-cert-auth', '--trusted-ca-file', tls.tls.ca, '--cert-file', tls.tls.cert, '--key-file', tls.tls.key] : []
  const initial = plans.map(({ name, peerUrl }) => `${name}=${peerUrl}`).join(',')
  const members = plans.map(({ name, url, peerUrl }) => {
    const own = ['--name', name, '--data-dir', data ?? join(directory, name), '--listen-client-urls', url, '--advertise-client-urls', url]
    const peers = ['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl, '--initial-cluster', initial]
    return createMember(url, [...own, ...peers, '--log-level', 'error', '--heartbeat-interval', '10', '--election-timeout', '100', ...flags, ...more])
  })
  const stop = async () => {
    await Promise.all(members.map((member) => member.kill()))
    await rm(directory, { recursive: true, force: true })
  }
  try {
    await until('etcd is healthy', async () => (await Promise.all(plans.map(({ url }) => isHealthy(url, tls)))).every(Boolean))
  } catch (error) {
    await stop()
    throw error
  }
  return { members, urls: plans.map(({ url }) => url), stop }
}

async function isHealthy(url: string, tls: EtcdTls | undefined): Promise<boolean> {
  const get = tls ? https.get : http.get
  return new Promise((resolve) => {
    get(`${url}/health`, { ...tls?.client, agent: false }, (answer) => {
      answer.resume()
      resolve(answer.statusCode === 200)
    }).once('error', () => resolve(false))
  })
}

function createMember(url: string, args: readonly string[]): EtcdMember {
  const start = (more: readonly string[] = []) => spawn('etcd', [...args, ...more], { stdio: 'ignore' })
  const member: EtcdMember = {
    url,
    process: start(),
    async kill() {
      const { process } = member
      if (process.exitCode !== null || process.signalCode !== null) return
      const exited = once(process, 'exit')
      process.kill('SIGKILL')
      await exited
    },
    restart(more) {
      member.process = start(more)
    },
  }
  return member
}
