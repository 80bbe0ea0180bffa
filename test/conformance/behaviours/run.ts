/**
 * Runs groups of behaviours on one cluster of real containers with two nodes: some at a time, each in a namespace of its own that is deleted
 * afterwards; those that need a node for themselves run at the end, one by one.
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { namespaces, serviceAccounts } from '#client/builtIn'
import { createExec } from '#host/exec'
import { busyboxImage } from '#kubelet/images/busyboxImage'
import { type Connection, connect } from '#main/package/connect'
import { LocalCluster, obstacleToCluster } from '../../e2e/support/localCluster.ts'
import type { Behaviour, BehaviourGroup } from './behaviour.ts'
import { busybox, createContext } from './context.ts'

const defaultSeconds = 90
const atOnce = 4

const secondsOf = ({ seconds = defaultSeconds }: Behaviour) => seconds

/** Registers the tests. `name` is the cluster's. */
export function runBehaviours(name: string, groups: readonly BehaviourGroup[]): void {
  const skip = obstacleToCluster(true)
  let cluster: LocalCluster
  let connection: Connection

  before(async () => {
    if (skip) return
    cluster = await LocalCluster.start(name, ['--nodes', '2'])
    await loadBusybox(cluster)
    connection = await connect({ kubeconfig: cluster.env.KUBECONFIG })
  })
  after(async () => {
    if (skip) return
    await connection?.close()
    await cluster?.delete()
  })

  const register = (group: BehaviourGroup, behaviour: Behaviour) => {
    const title = `${group.rows.join(' ')} [K] ${group.sig} ${group.title}: ${behaviour.name}`
    it(title, { skip: skip || behaviour.obstacle?.() || false, timeout: (secondsOf(behaviour) + 30) * 1000 }, () => runOne(cluster, connection, behaviour))
  }
  const select = (alone: boolean) => groups.flatMap((group) => group.behaviours.filter((one) => (one.alone ?? false) === alone).map((one) => ({ group, one })))
  describe('behaviours next to each other', { concurrency: atOnce }, () => {
    // The long ones first: the others fill the time.
    for (const { group, one } of select(false).sort((a, b) => secondsOf(b.one) - secondsOf(a.one))) register(group, one)
  })
  describe('behaviours alone', { concurrency: 1 }, () => {
    for (const { group, one } of select(true)) register(group, one)
  })
}

async function loadBusybox(cluster: LocalCluster): Promise<void> {
  const file = path.join(cluster.dir, 'busybox.tar')
  await fs.writeFile(file, await busyboxImage(createExec(), [busybox]))
  const { code, stderr } = await cluster.skiff(['image', 'load', '--name', cluster.name, file])
  if (code !== 0) throw new Error(`loading ${file} failed: ${stderr}`)
}

async function runOne(cluster: LocalCluster, connection: Connection, behaviour: Behaviour): Promise<void> {
  const { client } = connection
  const cleanUps: (() => Promise<unknown>)[] = []
  const created = await client.of(namespaces).create({ metadata: { generateName: 'behaviour-' }, spec: {} })
  const namespace = created.metadata.name ?? ''
  const nodes = [1, 2].map((index) => `${cluster.name}-node-${index}`)
  const context = createContext({ client, cluster, namespace, nodes, signal: AbortSignal.timeout(secondsOf(behaviour) * 1000), cleanUps })
  try {
    // No pod is admitted before its namespace has an account to run as.
    const accounts = () => client.of(serviceAccounts).list({ namespace })
    await context.eventually('the default service account', accounts, ({ items }) => items.some(({ metadata }) => metadata.name === 'default'))
    await behaviour.run(context)
  } finally {
    for (const work of cleanUps.reverse()) await work().catch((error: unknown) => console.error(`cleaning up after "${behaviour.name}": ${error}`))
    await client.of(namespaces).delete({ name: namespace })
  }
}
