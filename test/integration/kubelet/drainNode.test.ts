/** `skiff leave --drain`: the pods of a node are evicted, as PodDisruptionBudgets allow. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandError } from '#cli/exitCodes'
import { daemonSets, deployments, nodes, podDisruptionBudgets, pods } from '#client/builtIn'
import { drainNode } from '#main/leave/drainNode'
import { startCluster, type TestCluster } from '#testing/cluster'

const labels = { app: 'web' }
const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'web' }] } }

async function withPods(replicas: number): Promise<TestCluster> {
  const cluster = await startCluster({ nodes: 2, recordHistory: true })
  await cluster.client.of(daemonSets).create({
    metadata: { namespace: 'default', name: 'agent' },
    spec: { selector: { matchLabels: { app: 'agent' } }, template: { metadata: { labels: { app: 'agent' } }, spec: template.spec } },
  })
  await cluster.client.of(deployments).create({
    metadata: { namespace: 'default', name: 'web' },
    spec: { replicas, selector: { matchLabels: labels }, template },
  })
  await cluster.until(async () => (await of(cluster, 'web')).filter(({ status }) => status?.phase === 'Running').length === replicas)
  return cluster
}
const of = async ({ client }: TestCluster, app: string) => (await client.of(pods).list({ namespace: 'default', labelSelector: `app=${app}` })).items
const namesOn = async (cluster: TestCluster, node: string, app: string) => (await of(cluster, app)).filter(({ spec }) => spec.nodeName === node).length

/** The cluster's time passes while the node is drained. */
async function drained(cluster: TestCluster, timeoutMs: number): Promise<number | CommandError> {
  let outcome: number | CommandError | undefined
  const draining = drainNode(cluster.client, cluster.clock, 'n1', timeoutMs, new AbortController().signal).then(
    (count) => (outcome = count),
    (error) => (outcome = error as CommandError),
  )
  await cluster.until(async () => outcome !== undefined, 3_600_000)
  await draining
  return outcome as number | CommandError
}

test('KUB-23 a node that leaves is cordoned and drained, and keeps the pods of DaemonSets', async () => {
  await using cluster = await withPods(4)
  const before = await namesOn(cluster, 'n1', 'web')
  assert.ok(before > 0)
  assert.equal(await drained(cluster, 60_000), before)
  assert.equal((await cluster.client.of(nodes).get({ name: 'n1' })).spec.unschedulable, true)
  await cluster.until(async () => (await namesOn(cluster, 'n2', 'web')) === 4)
  assert.deepEqual([await namesOn(cluster, 'n1', 'web'), await namesOn(cluster, 'n1', 'agent')], [0, 1])
})

test('KUB-23 a drain waits for a PodDisruptionBudget that allows one pod after the other', async () => {
  await using cluster = await withPods(4)
  const budget = { metadata: { namespace: 'default', name: 'web' }, spec: { maxUnavailable: 1, selector: { matchLabels: labels } } }
  await cluster.client.of(podDisruptionBudgets).create(budget)
  await cluster.until(async () => (await cluster.client.of(podDisruptionBudgets).get({ namespace: 'default', name: 'web' })).status?.disruptionsAllowed === 1)
  const before = await namesOn(cluster, 'n1', 'web')
  assert.equal(await drained(cluster, 600_000), before)
  const deletions = cluster.history().filter(({ type, key }) => type === 'delete' && key.startsWith('/registry/pods/default/web-'))
  // A pod is evicted when the one that replaces the last is ready, which takes time.
  assert.deepEqual([deletions.length, new Set(deletions.map(({ timeMs }) => timeMs)).size], [before, before])
})

test('KUB-23 a drain that a PodDisruptionBudget forbids ends after its time, names the pods, and evicts none', async () => {
  await using cluster = await withPods(2)
  await cluster.client.of(podDisruptionBudgets).create({
    metadata: { namespace: 'default', name: 'web' },
    spec: { maxUnavailable: 0, selector: { matchLabels: labels } },
  })
  await cluster.clock.advance(5_000)
  const before = await namesOn(cluster, 'n1', 'web')
  const error = await drained(cluster, 30_000)
  assert.ok(error instanceof CommandError, String(error))
  assert.deepEqual([error.exit, error.details.length], ['timeout', before])
  assert.equal(await namesOn(cluster, 'n1', 'web'), before)
})
