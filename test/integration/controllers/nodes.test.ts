/** What nodes get from their controllers, and what becomes of pods on nodes that are not ready; each controller with its own rights. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatTime } from '#base/time'
import { nodes, pods } from '#client/builtIn'
import { realClock } from '#testing/realClock'
import { eventually, startTestCluster, type TestCluster } from './cluster.ts'

const namespace = 'default'
// No heartbeats: the test sets each node's Ready condition.
const hourMs = 3_600_000
const options = { nodeMonitorPeriodMs: 20, nodeMonitorGracePeriodMs: hourMs, nodeStartupGracePeriodMs: hourMs, clusterCidr: '10.9.0.0/16,fd00:9::/56' }

function tools({ client }: TestCluster) {
  return {
    say: async (name: string, ready: string) => {
      const time = formatTime(realClock.now())
      const conditions = [{ type: 'Ready', status: ready, reason: 'Test', lastHeartbeatTime: time, lastTransitionTime: time }]
      await client.of(nodes).patch({ name }, 'strategic', { status: { conditions } }, { subresource: 'status' })
    },
    taints: async (name: string) =>
      ((await client.of(nodes).get({ name })).spec.taints ?? []).map(({ key, effect }) => `${key.replace(/.*\//, '')}:${effect}`).sort(),
  }
}

test('CTL-09 nodes get addresses of both families, older labels and how long to cache', async () => {
  const cluster = await startTestCluster(options)
  try {
    const labels = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' }
    await cluster.client.of(nodes).create({ metadata: { name: 'a', labels }, spec: {} })
    await eventually(async () => {
      const { metadata, spec } = await cluster.client.of(nodes).get({ name: 'a' })
      assert.deepEqual([spec.podCIDR, spec.podCIDRs], ['10.9.0.0/24', ['10.9.0.0/24', 'fd00:9::/64']])
      assert.equal(metadata.annotations?.['node.alpha.kubernetes.io/ttl'], '0')
      assert.deepEqual([metadata.labels?.['beta.kubernetes.io/os'], metadata.labels?.['beta.kubernetes.io/arch']], ['linux', 'amd64'])
      return true
    })
  } finally {
    await cluster.close()
  }
})

test('CTL-09 pods are evicted from a node that is not ready, unless no node is', async () => {
  const cluster = await startTestCluster(options)
  const { say, taints } = tools(cluster)
  try {
    for (const name of ['a', 'b']) {
      await cluster.client.of(nodes).create({ metadata: { name }, spec: {} })
      await say(name, 'True')
    }
    for (const name of ['a', 'b']) await eventually(async () => (await taints(name)).length === 0)
    const containers = [{ name: 'c', image: 'a' }]
    const create = (name: string, tolerations: object[]) =>
      cluster.client
        .of(pods)
        .create({ metadata: { namespace, name, finalizers: ['example.com/look'] }, spec: { nodeName: 'b', containers, tolerations } as never })
    await create('goes', [])
    await create('stays', [{ operator: 'Exists' }])
    await say('b', 'False')
    await eventually(async () => (await taints('b')).includes('not-ready:NoExecute'))
    const gone = await eventually(async () => {
      const pod = await cluster.client.of(pods).get({ namespace, name: 'goes' })
      return pod.metadata.deletionTimestamp !== undefined && pod
    })
    assert.equal(gone.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')?.reason, 'DeletionByTaintManager')
    assert.equal((await cluster.client.of(pods).get({ namespace, name: 'stays' })).metadata.deletionTimestamp, undefined)
    // From the node's word to our own finding: the taint changes at once.
    await say('b', 'Unknown')
    await eventually(async () => {
      assert.deepEqual(await taints('b'), ['unreachable:NoExecute', 'unreachable:NoSchedule'])
      return true
    })
    // Now all nodes are unreachable, so the fault is probably not theirs: no eviction.
    await say('a', 'Unknown')
    for (const name of ['a', 'b']) await eventually(async () => (await taints(name)).join() === 'unreachable:NoSchedule')
    for (const name of ['a', 'b']) await say(name, 'True')
    for (const name of ['a', 'b']) await eventually(async () => (await taints(name)).length === 0)
  } finally {
    await cluster.close()
  }
})

test('CTL-09 tolerationSeconds of a taint without timeAdded count from when the controller saw it', async () => {
  const cluster = await startTestCluster(options)
  const { say, taints } = tools(cluster)
  try {
    await cluster.client.of(nodes).create({ metadata: { name: 'a' }, spec: {} })
    await say('a', 'True')
    await eventually(async () => (await taints('a')).length === 0)
    const tolerations = [{ key: 'example.com/evict', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 1 }]
    const spec = { nodeName: 'a', containers: [{ name: 'c', image: 'a' }], tolerations }
    await cluster.client.of(pods).create({ metadata: { namespace, name: 'brief', finalizers: ['example.com/look'] }, spec } as never)
    await cluster.client.of(nodes).patch({ name: 'a' }, 'strategic', { spec: { taints: [{ key: 'example.com/evict', effect: 'NoExecute' }] } })
    await eventually(async () => (await cluster.client.of(pods).get({ namespace, name: 'brief' })).metadata.deletionTimestamp !== undefined)
  } finally {
    await cluster.close()
  }
})
