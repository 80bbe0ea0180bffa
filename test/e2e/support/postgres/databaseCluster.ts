/** A cluster of real nodes with the databases on it, as the faults see it (tests only). */
import assert from 'node:assert/strict'
import { createExec } from '#host/exec'
import { eventually, LocalCluster } from '../localCluster.ts'
import { CommitWriter, type DatabaseAddress } from './commitWriter.ts'
import { databaseObjects } from './database.ts'

const setName = 'database'
const replicas = 3
const volumeBytes = 256 * 2 ** 20
const readyMs = 150_000

export class DatabaseCluster {
  readonly local: LocalCluster
  readonly nodes: readonly string[]
  #writers: readonly CommitWriter[] = []

  private constructor(local: LocalCluster, nodes: readonly string[]) {
    this.local = local
    this.nodes = nodes
  }

  static async start(name: string, nodeCount: number): Promise<DatabaseCluster> {
    const nodes = Array.from({ length: nodeCount }, (_, index) => `${name}-node-${index + 1}`)
    return new DatabaseCluster(await LocalCluster.start(name, ['--nodes', String(nodeCount)]), nodes)
  }

  /** One for each database. */
  get writers(): readonly CommitWriter[] {
    return this.#writers
  }

  /** Resolves when every database has acknowledged commits. @param imageFile the tar of the databases' image */
  async startDatabases(imageFile: string): Promise<void> {
    for (const command of [
      ['image', 'load', '--name', this.local.name, imageFile],
      ['addon', 'enable', 'csi-hostpath', '--cluster', this.local.name],
    ]) {
      const { code, stderr } = await this.local.skiff(command)
      assert.equal(code, 0, stderr)
    }
    await this.local.mustWith(list(databaseObjects(setName, { replicas, storage: String(volumeBytes) })), ['apply', '-f', '-'])
    const addressOf = await addresses(this.local)
    this.#writers = await Promise.all(pods().map(async (pod) => new CommitWriter(pod, await addressOf(pod))))
    for (const writer of this.#writers) writer.start()
    await this.recovered()
  }

  async end(): Promise<void> {
    await Promise.all(this.writers.map((writer) => writer.stop()))
    await this.local.delete()
  }

  nodeOf(pod: string): Promise<string> {
    return this.local.must(['get', 'pod', pod, '-o', 'jsonpath={.spec.nodeName}'])
  }

  /** A process of a node, as the host numbers it: 'init', or 'node' for its agent. */
  async pidOf(role: string, node: string): Promise<number> {
    const { stdout } = await this.local.skiff(['status', this.local.name, '-o', 'json'])
    const { pids } = JSON.parse(stdout) as { pids: { role: string; pid: number; node?: string }[] }
    return pids.find((one) => one.role === role && one.node === node)?.pid ?? 0
  }

  /** Kills the process, and waits until another one has its part. */
  async replace(role: string, node: string): Promise<void> {
    const killed = await this.pidOf(role, node)
    assert.ok(killed > 1, `${role} of ${node} runs`)
    process.kill(killed, 'SIGKILL')
    await eventually(
      `another ${role} of ${node}`,
      readyMs,
      () => this.pidOf(role, node),
      (pid) => pid > 1 && pid !== killed,
    )
  }

  /** Runs a program in all namespaces of a node. */
  async onNode(node: string, ...command: string[]): Promise<string> {
    const { code, stdout, stderr } = await createExec().run('nsenter', [
      ...['-t', String(await this.pidOf('init', node)), '-m', '-u', '-i', '-n', '-p', '--'],
      ...command,
    ])
    assert.equal(code, 0, `${command.join(' ')}: ${stderr}`)
    return stdout
  }

  /** All pods are ready and every database acknowledges commits. */
  async recovered(): Promise<void> {
    await this.local.must(['rollout', 'status', `statefulset/${setName}`, `--timeout=${readyMs}ms`], readyMs + 10_000)
    await Promise.all(this.writers.map((writer) => writer.progress(5, readyMs)))
  }

  async assertNothingLost(): Promise<void> {
    await Promise.all(this.writers.map((writer) => writer.assertNothingLost()))
  }

  /** Runs the work with a database of its own in a second StatefulSet, whose volume is made from the snapshot. Deletes all of it afterwards. */
  async withRestored(snapshot: string, work: (address: DatabaseAddress) => Promise<void>): Promise<void> {
    const name = 'restored'
    const storage = await this.local.must(['get', 'volumesnapshot', snapshot, '-o', 'jsonpath={.status.restoreSize}'])
    const objects = list(databaseObjects(name, { replicas: 1, storage, snapshot }))
    await this.local.mustWith(objects, ['apply', '-f', '-'])
    await this.local.must(['rollout', 'status', `statefulset/${name}`, `--timeout=${readyMs}ms`], readyMs + 10_000)
    await work(await (await addresses(this.local))(`${name}-0`))
    await this.local.mustWith(objects, ['delete', '--wait', '--timeout=60s', '-f', '-'])
    await this.local.must(['delete', 'pod,pvc', '-l', `app=${name}`, '--wait', '--timeout=60s'], 70_000)
  }
}

const pods = () => Array.from({ length: replicas }, (_, index) => `${setName}-${index}`)
const list = (items: readonly object[]) => JSON.stringify({ apiVersion: 'v1', kind: 'List', items })

/** The addresses of all nodes, and the port of the pod's Service. */
async function addresses(local: LocalCluster): Promise<(pod: string) => Promise<DatabaseAddress>> {
  const template = 'jsonpath={.items[*].status.addresses[?(@.type=="InternalIP")].address}'
  const hosts = (await local.must(['get', 'nodes', '-o', template])).split(' ')
  return async (pod) => ({ hosts, port: Number(await local.must(['get', 'service', pod, '-o', 'jsonpath={.spec.ports[0].nodePort}'])) })
}
