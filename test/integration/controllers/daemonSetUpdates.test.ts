/** DaemonSets on a whole cluster under virtual time: how updates and failures go, step by step. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DaemonSetSpec } from '#api/gen/types/apps.v1'
import { isPodReady } from '#api/helpers/pods'
import { daemonSets, events, pods } from '#client/builtIn'
import { startCluster, type TestCluster } from '#testing/cluster'

const namespace = 'default'
const labels = { app: 'agent' }
const template = (image: string, annotations: Record<string, string> = {}) => ({
  metadata: { labels, annotations },
  spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image }] },
})

async function withDaemonSet(spec: Partial<DaemonSetSpec>, use: (cluster: TestCluster) => Promise<void>): Promise<void> {
  const cluster = await startCluster({ nodes: 3 })
  try {
    const wanted = { selector: { matchLabels: labels }, template: template('example.com/agent:1'), ...spec }
    await cluster.client.of(daemonSets).create({ metadata: { namespace, name: 'agent' }, spec: wanted })
    await cluster.until(async () => (await agents(cluster)).length === 3)
    await use(cluster)
  } finally {
    await cluster.close()
  }
}

const agents = async ({ client }: TestCluster) => (await client.of(pods).list({ namespace, labelSelector: 'app=agent' })).items
const statusOf = async ({ client }: TestCluster) => (await client.of(daemonSets).get({ namespace, name: 'agent' })).status
const update = ({ client }: TestCluster, image: string) =>
  client.of(daemonSets).patch({ namespace, name: 'agent' }, 'strategic', { spec: { template: template(image) } })
const imagesOf = async (cluster: TestCluster) => (await agents(cluster)).map(({ spec }) => spec.containers[0]?.image?.split(':')[1])

test('CTL-06 with minReadySeconds a ready pod becomes available after that time, without another event', () =>
  withDaemonSet({ minReadySeconds: 30 }, async (cluster) => {
    await cluster.until(async () => (await statusOf(cluster)).numberReady === 3)
    const readyMs = cluster.clock.monotonicMs()
    assert.equal((await statusOf(cluster)).numberAvailable, undefined)
    await cluster.until(async () => (await statusOf(cluster)).numberAvailable === 3)
    assert.ok(cluster.clock.monotonicMs() - readyMs < 32_000)
  }))

test('CTL-06 maxSurge: every node has an available pod at every step, and one node at most has two', () =>
  withDaemonSet({ updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } }, async (cluster) => {
    await cluster.until(async () => (await statusOf(cluster)).numberAvailable === 3)
    await update(cluster, 'example.com/agent:2')
    let most = 0
    await cluster.until(async () => {
      const all = await agents(cluster)
      const serving = new Set(all.filter((pod) => isPodReady(pod) && !pod.metadata.deletionTimestamp).map(({ spec }) => spec.nodeName))
      assert.equal(serving.size, 3)
      most = Math.max(most, all.filter(({ metadata }) => !metadata.deletionTimestamp).length)
      return (await imagesOf(cluster)).join() === '2,2,2' && (await statusOf(cluster)).updatedNumberScheduled === 3
    })
    assert.equal(most, 4)
  }))

test('CTL-06 maxSurge replaces pods that are not ready at once, beyond the limit', () =>
  withDaemonSet({ updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } }, async (cluster) => {
    await cluster.until(async () => (await statusOf(cluster)).numberAvailable === 3)
    const readinessGates = [{ conditionType: 'example.com/never' }]
    const broken = template('example.com/agent:2')
    const spec = { template: { ...broken, spec: { ...broken.spec, readinessGates } } }
    await cluster.client.of(daemonSets).patch({ namespace, name: 'agent' }, 'strategic', { spec })
    await cluster.clock.advance(20_000)
    // The new pod never becomes ready, so the update stops there.
    assert.deepEqual((await imagesOf(cluster)).sort(), ['1', '1', '1', '2'])
    await cluster.client.of(daemonSets).patch({ namespace, name: 'agent' }, 'merge', { spec: { template: template('example.com/agent:3') } })
    await cluster.client.of(daemonSets).patch({ namespace, name: 'agent' }, 'merge', { spec: { template: { spec: { readinessGates: null } } } })
    await cluster.until(async () => (await imagesOf(cluster)).join() === '3,3,3')
  }))

test('CTL-06 a pod that fails again and again is replaced after growing waits; one that succeeds at once', () =>
  withDaemonSet({}, async (cluster) => {
    await cluster.until(async () => (await statusOf(cluster)).numberAvailable === 3)
    const end = async (phase: 'Failed' | 'Succeeded') => {
      const pod = (await agents(cluster)).find(({ spec, metadata }) => spec.nodeName === 'n1' && !metadata.deletionTimestamp)
      const name = pod?.metadata.name ?? ''
      await cluster.client.of(pods).patch({ namespace, name }, 'merge', { status: { phase } }, { subresource: 'status' })
      const endedMs = cluster.clock.monotonicMs()
      await cluster.until(async () => (await agents(cluster)).every(({ metadata }) => metadata.name !== name || metadata.deletionTimestamp))
      return cluster.clock.monotonicMs() - endedMs
    }
    // The machine is off: only the controller deletes its pods.
    cluster.node('n1').partition()
    const waits: number[] = []
    for (let i = 0; i < 4; i++) waits.push(await end('Failed'))
    assert.equal(waits[0], 0)
    assert.ok(
      waits.slice(1).every((ms, i) => ms > 0 && ms <= 1_000 * 2 ** i && ms >= (waits[i] ?? 0)),
      waits.join(),
    )
    assert.equal(await end('Succeeded'), 0)
    await cluster.clock.advance(1_000)
    const reasons = new Set((await cluster.client.of(events).list({ namespace })).items.map(({ reason }) => reason))
    assert.ok(reasons.has('FailedDaemonPod') && reasons.has('SucceededDaemonPod'))
  }))
