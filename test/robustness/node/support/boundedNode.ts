/**
 * A node whose disks are small and whose pods' memory is bounded (tests only): containerd and `skiff kubelet` on file systems of their own, with a
 * control plane of three processes. Pods exhaust the node's resources without affecting the machine.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { deployments, events, nodes, pods, serviceAccounts } from '#client/builtIn'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport, type HttpTransport } from '#client/httpTransport'
import { check, createExec } from '#host/exec'
import { createKubeletHost } from '#kubelet/core/host'
import { freePort } from '#main/localCluster/freePort'
import { issueCertificate } from '#main/pki/certificates'
import { realClock } from '#testing/realClock'
import { missingPrerequisite, startContainerd, type TestContainerd } from '../../../e2e/kubeletContainerd.ts'
import { eventually, skiffBin } from '../../../e2e/support/localCluster.ts'

export const withinMs = 60_000
export const nodeName = 'bounded'
const root = path.resolve(import.meta.dirname, '../../../..')
const exec = createExec()

/** Why such a node cannot be had here; false when it can. */
export async function obstacleToNode(): Promise<string | false> {
  if (!fs.existsSync(path.join(root, 'dist/skiff.mjs'))) return 'needs a build: make build'
  return (await missingPrerequisite()) ?? false
}

export interface BoundedNodeOptions {
  /** The kubelet's file system and the one of images and containers; absent: the machine's own. */
  readonly nodefsBytes?: number
  readonly imagefsBytes?: number
  /** How many files the kubelet's file system can have; absent: as many as its size is worth. */
  readonly nodefsInodes?: number
  /** Fields of KubeletConfiguration. */
  readonly kubelet: Readonly<Record<string, unknown>>
}

/** The file system is a file; its loop device is detached with the mount. */
async function mountBounded(file: string, directory: string, bytes: number, inodes?: number): Promise<void> {
  fs.mkdirSync(directory, { recursive: true })
  fs.writeFileSync(file, '')
  fs.truncateSync(file, bytes)
  await check(exec, 'mkfs.ext4', ['-q', '-m', '0', '-O', '^has_journal', ...(inodes === undefined ? [] : ['-N', String(inodes)]), file])
  await check(exec, 'mount', ['-o', 'loop', file, directory])
}

export class BoundedNode {
  readonly client: Client
  readonly containerd: TestContainerd
  readonly #transport: HttpTransport
  readonly #children: ChildProcess[] = []
  readonly #said = new Map<ChildProcess, string>()
  #kubelet: ChildProcess | undefined
  #settings: Readonly<Record<string, unknown>>

  private constructor(containerd: TestContainerd, transport: HttpTransport, control: ControlPlane, settings: Readonly<Record<string, unknown>>) {
    this.containerd = containerd
    this.#transport = transport
    this.client = createClient(transport)
    this.#settings = settings
    this.#children.push(...control.children)
    for (const child of control.children) this.#said.set(child, '')
  }

  static async start({ nodefsBytes, nodefsInodes, imagefsBytes, kubelet }: BoundedNodeOptions): Promise<BoundedNode> {
    const containerd = await startContainerd(async (directory) => {
      if (nodefsBytes !== undefined) await mountBounded(path.join(directory, 'node.img'), path.join(directory, 'node'), nodefsBytes, nodefsInodes)
      if (imagefsBytes !== undefined) await mountBounded(path.join(directory, 'images.img'), path.join(directory, 'root'), imagefsBytes)
    })
    const control = new ControlPlane(path.join(containerd.directory, 'control'))
    try {
      const transport = await control.start()
      const node = new BoundedNode(containerd, transport, control, { ...(await fixedSettings(containerd)), ...kubelet })
      await node.startKubelet()
      const account = () =>
        node.client
          .of(serviceAccounts)
          .get({ namespace: 'default', name: 'default' })
          .catch(() => undefined)
      await eventually('the account of pods', withinMs, account, (found) => found !== undefined)
      return node
    } catch (error) {
      for (const child of control.children.reverse()) await end(child)
      await takeDown(containerd)
      throw error
    }
  }

  /** The kubelet's own file system, as the test sees it. */
  get nodefs(): string {
    return path.join(this.containerd.directory, 'node')
  }
  /** Where images and containers are. */
  get imagefs(): string {
    return path.join(this.containerd.directory, 'root')
  }

  /** Starts the kubelet, with other settings where some are given, and waits until its node is ready. */
  async startKubelet(changes: Readonly<Record<string, unknown>> = {}): Promise<void> {
    this.#settings = { ...this.#settings, ...changes }
    const { directory } = this.containerd
    const control = path.join(directory, 'control')
    fs.writeFileSync(path.join(control, 'kubelet.json'), JSON.stringify(this.#settings))
    // Heartbeats count in seconds: the first whole one from now on.
    const fromMs = Math.ceil(Date.now() / 1000) * 1000
    const child = startProcess([
      'kubelet',
      `--config=${control}/kubelet.json`,
      `--kubeconfig=${control}/kubelet.conf`,
      `--cert-dir=${control}/kubelet-pki`,
      `--root-dir=${this.nodefs}/kubelet`,
      `--hostname-override=${nodeName}`,
      '--node-ip=10.123.45.1',
    ])
    this.#kubelet = child
    this.#children.push(child)
    this.#said.set(child, '')
    child.stderr?.on('data', (chunk) => this.#said.set(child, (this.#said.get(child) + String(chunk)).slice(-20_000)))
    const heartbeat = async () => (await this.node())?.status?.conditions?.find(({ type }) => type === 'Ready')
    const ready = eventually('the node is ready', withinMs, heartbeat, (ready) => {
      if (child.exitCode !== null) throw new Error(`the kubelet ended with ${child.exitCode}: ${this.kubeletLog}`)
      return ready?.status === 'True' && Date.parse(ready.lastHeartbeatTime ?? '') >= fromMs
    })
    await ready.catch((error: Error) => Promise.reject(new Error(`${error.message}\n${this.kubeletLog}`)))
  }

  async killKubelet(): Promise<void> {
    if (this.#kubelet) await end(this.#kubelet, 'SIGKILL')
  }

  get kubeletLog(): string {
    return (this.#kubelet && this.#said.get(this.#kubelet)) ?? ''
  }

  node() {
    return this.client
      .of(nodes)
      .get({ name: nodeName })
      .catch(() => undefined)
  }

  async pods() {
    return (await this.client.of(pods).list({ namespace: 'default' })).items
  }

  pod(name: string) {
    return this.client.of(pods).get({ namespace: 'default', name })
  }

  /** The events about an object, as 'reason: note'. */
  async eventsOf(name: string): Promise<string[]> {
    const { items } = await this.client.of(events).list({})
    return items.filter(({ involvedObject }) => involvedObject.name === name).map(({ reason, message }) => `${reason}: ${message}`)
  }

  /** Waits until all pods of these names run, none more. */
  running(...names: string[]) {
    return eventually(
      `${names.join(', ')} run, and no others`,
      withinMs,
      async () => (await this.pods()).filter(({ status }) => status?.phase !== 'Failed'),
      (found) =>
        found.length === names.length &&
        found.every(({ metadata, status }) => names.includes(metadata.name ?? '') && status?.containerStatuses?.every(({ ready }) => ready) === true),
    )
  }

  /** The mounts, directories, cgroups, links and processes of pods on the node. */
  async leftovers(): Promise<Record<string, string[]>> {
    const { directory, cgroupRoot, namespace } = this.containerd
    const below = (dir: string) => (fs.existsSync(dir) ? fs.readdirSync(dir) : [])
    const mounts = fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
    // Not readdir: it would fail on a directory that is removed meanwhile.
    const find = async (...words: string[]) => (await exec.run('find', words)).stdout.split('\n').filter(Boolean)
    const hierarchies = below('/sys/fs/cgroup').map((hierarchy) => path.join('/sys/fs/cgroup', hierarchy, cgroupRoot))
    const links = await exec.run('ip', ['-n', namespace, '-o', 'link', 'show', 'type', 'veth'])
    return {
      mounts: mounts.map((line) => line.split(' ')[4] ?? '').filter((at) => at.startsWith(`${directory}/node/`) || at.startsWith(`${directory}/state/`)),
      podDirectories: below(`${this.nodefs}/kubelet/pods`),
      logDirectories: below(`${this.nodefs}/logs`),
      cgroups: await find(...hierarchies, '-type', 'd', '-name', 'pod*'),
      links: links.stdout.split('\n').filter(Boolean),
      shims: processesNaming(directory),
      halfWritten: await find(this.nodefs, '-name', '*.tmp'),
    }
  }

  /** Deletes a deployment and pods; resolves when nothing is left of any pod: no mount, cgroup, interface, process or directory. */
  async empty(deployment: string, names: readonly string[]): Promise<void> {
    await this.client.of(deployments).delete({ namespace: 'default', name: deployment }, { propagationPolicy: 'Background' })
    for (const name of names) await this.client.of(pods).delete({ namespace: 'default', name })
    const left = () => this.pods()
    await eventually('no pods', withinMs, left, (found) => found.length === 0)
    await eventually(
      'a clean node',
      withinMs,
      () => this.leftovers(),
      (found) => Object.values(found).every((some) => some.length === 0),
    )
  }

  async stop(): Promise<void> {
    for (const child of this.#children.reverse()) await end(child)
    await this.#transport.close()
    await takeDown(this.containerd)
  }
}

async function fixedSettings(containerd: TestContainerd): Promise<Record<string, unknown>> {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    port: await freePort(),
    healthzPort: 0,
    address: '127.0.0.1',
    containerRuntimeEndpoint: `unix://${containerd.socket}`,
    cgroupRoot: containerd.cgroupRoot,
    podLogsDir: `${containerd.directory}/node/logs`,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: false }, x509: { clientCAFile: `${containerd.directory}/control/data/pki/ca.crt` } },
    authorization: { mode: 'AlwaysAllow' },
    evictionPressureTransitionPeriod: '5s',
    nodeStatusUpdateFrequency: '1s',
    imageMinimumGCAge: '0s',
  }
}

function startProcess(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [skiffBin, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
}

async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

async function takeDown(containerd: TestContainerd): Promise<void> {
  const host = await createKubeletHost()
  await containerd.stop()
  await host.cgroups.remove(containerd.cgroupRoot)
}

function processesNaming(text: string): string[] {
  return fs
    .readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .flatMap((pid) => {
      try {
        const command = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
        return command.includes('containerd-shim') && command.includes(text) ? [command] : []
      } catch {
        return []
      }
    })
}

/** API server, controllers and scheduler as processes, each with an identity of its own. */
class ControlPlane {
  readonly children: ChildProcess[] = []
  readonly #dir: string
  #port = ''

  constructor(dir: string) {
    this.#dir = dir
    fs.mkdirSync(dir, { recursive: true, mode: 0o700 })
  }

  /** A client with an administrator's rights. */
  async start(): Promise<HttpTransport> {
    const api = startProcess(['apiserver', `--data-dir=${this.#at('data')}`, '--secure-port=0'])
    this.children.push(api)
    let said = ''
    api.stderr?.on('data', (chunk) => {
      said += said.length < 100_000 ? chunk : ''
    })
    const port = async () => /Serving securely.*127\.0\.0\.1:(\d+)/.exec(said)?.[1]
    this.#port = (await eventually('the API server serves', withinMs, port, (found) => found !== undefined)) ?? ''
    const users = { 'controller-manager': 'system:kube-controller-manager', scheduler: 'system:kube-scheduler', kubelet: `system:node:${nodeName}` }
    for (const [name, commonName] of Object.entries(users)) await this.#writeKubeconfig(name, commonName, name === 'kubelet' ? ['system:nodes'] : [])
    const signing = [`--root-ca-file=${this.#pki('ca.crt')}`, `--service-account-private-key-file=${this.#pki('sa.key')}`]
    for (const [part, args] of [
      ['controller-manager', ['--use-service-account-credentials=true', ...signing]],
      ['scheduler', []],
    ] as const) {
      const child = startProcess([part, `--kubeconfig=${this.#at(`${part}.conf`)}`, '--secure-port=0', '--leader-elect=false', ...args])
      child.stderr?.resume()
      this.children.push(child)
    }
    const tls = { ca: this.#read('ca.crt'), cert: this.#read('admin.crt'), key: this.#read('admin.key') }
    return createHttpTransport({ server: this.#server, clock: realClock, tls })
  }

  get #server(): string {
    return `https://127.0.0.1:${this.#port}`
  }
  #at(name: string): string {
    return path.join(this.#dir, name)
  }
  #pki(name: string): string {
    return this.#at(`data/pki/${name}`)
  }
  #read(name: string): string {
    return fs.readFileSync(this.#pki(name), 'utf8')
  }

  async #writeKubeconfig(name: string, commonName: string, organizations: readonly string[]): Promise<void> {
    const ca = { cert: this.#read('ca.crt'), key: this.#read('ca.key') }
    const pair = await issueCertificate(ca, { commonName, organizations, usage: 'client', validDays: 2 }, Date.now())
    fs.writeFileSync(this.#at(`${name}.crt`), pair.cert)
    fs.writeFileSync(this.#at(`${name}.key`), pair.key, { mode: 0o600 })
    const config = {
      'current-context': 'x',
      clusters: [{ name: 'x', cluster: { server: this.#server, 'certificate-authority': this.#pki('ca.crt') } }],
      users: [{ name: 'x', user: { 'client-certificate': this.#at(`${name}.crt`), 'client-key': this.#at(`${name}.key`) } }],
      contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    }
    fs.writeFileSync(this.#at(`${name}.conf`), JSON.stringify(config), { mode: 0o600 })
  }
}
