import assert from 'node:assert/strict'
import https from 'node:https'
import { test } from 'node:test'
import { deployments, jobs, nodes, pods } from '#client/builtIn'
import { startCluster, type TestCluster } from '#testing/cluster'
import { withCluster } from './withCluster.ts'
import { addCronJob, addDeployment, addMixedWorkload, podSpec } from './workloads.ts'

const hourMs = 3_600_000

test('X2 a cluster starts whole in this process, does its work when time passes, and closes', () =>
  withCluster({ nodes: 2 }, async ({ client, until, clock, complaints }) => {
    await addDeployment(client, 'web', 3)
    const readyReplicas = async () => (await client.of(deployments).get({ namespace: 'default', name: 'web' })).status?.readyReplicas === 3
    await until(readyReplicas)
    const { items } = await client.of(pods).list({ namespace: 'default' })
    assert.deepEqual(
      items.map(({ status }) => status?.phase),
      ['Running', 'Running', 'Running'],
    )
    assert.equal(new Set(items.map(({ status }) => status?.podIP)).size, 3)
    assert.ok(clock.monotonicMs() < 10_000)
    assert.deepEqual(complaints, [])
  }))

test('X2 clusters do not disturb each other', async () => {
  const clusters = await Promise.all([startCluster(), startCluster(), startCluster()])
  try {
    await Promise.all(clusters.map(({ client }, index) => addDeployment(client, `web-${index}`, 1)))
    await Promise.all(clusters.map(({ clock }) => clock.advance(5_000)))
    for (const [index, { client }] of clusters.entries()) {
      const { items } = await client.of(pods).list({ namespace: 'default' })
      assert.deepEqual(
        items.map(({ metadata, status }) => [metadata.labels?.app, status?.phase]),
        [[`web-${index}`, 'Running']],
      )
    }
  } finally {
    await Promise.all(clusters.map((cluster) => cluster.close()))
  }
})

test('X2 the cluster answers on a port, with the address and credentials of its kubeconfig', () =>
  withCluster({}, async ({ listen, kubeconfig }) => {
    const { url, ca, token } = await listen()
    const body = await new Promise<string>((resolve, reject) => {
      const request = https.get(`${url}/api/v1/nodes`, { ca, headers: { authorization: `Bearer ${token}` } }, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => resolve(text))
      })
      request.on('error', reject)
    })
    assert.equal(JSON.parse(body).items[0].metadata.name, 'n1')
    const text = await kubeconfig()
    for (const part of [url, token, Buffer.from(ca).toString('base64')]) assert.ok(text.includes(part))
  }))

async function historyOf(seed: number): Promise<string> {
  let text = ''
  await withCluster({ seed, nodes: 3, recordHistory: true }, async ({ client, clock, node, faults, history }) => {
    await addMixedWorkload(client)
    await clock.advance(30_000)
    faults.refuse({ verb: 'patch', resource: 'pods', nth: 3 }, 'InternalError')
    faults.crashAt('kube-controller-manager', 7)
    node('n2').reboot()
    await clock.advance(5 * 60_000)
    text = history()
      .map((change) => JSON.stringify(change))
      .join('\n')
  })
  return text
}

test('X3 one seed gives one history: names, uids, revisions, times and order, byte for byte', async () => {
  const first = await historyOf(11)
  assert.ok(first.split('\n').length > 300)
  const again = await historyOf(11)
  const other = await historyOf(12)
  // Whole texts are long: report only the first line that differs.
  const [a, b] = [first.split('\n'), again.split('\n')]
  const at = a.findIndex((line, index) => line !== b[index])
  assert.deepEqual([a[at], a.length], [at < 0 ? undefined : b[at], b.length])
  assert.notEqual(first, other)
})

test('X3 idle resolves when nothing is under way, and nothing happens after it until time passes', () =>
  withCluster({ recordHistory: true }, async ({ client, idle, history }) => {
    await addDeployment(client, 'web', 2)
    await idle()
    const { length } = history()
    const { items } = await client.of(pods).list({ namespace: 'default' })
    assert.deepEqual(
      items.map(({ spec }) => spec.nodeName),
      ['n1', 'n1'],
    )
    await idle()
    await idle()
    assert.equal(history().length, length)
  }))

test('X3 a CronJob runs for hours on time, and keeps to its history limits', () =>
  withCluster({}, async ({ client, clock }) => {
    await addCronJob(client, 'tick', '*/5 * * * *')
    await clock.advance(3 * hourMs + 60_000)
    const { items } = await client.of(jobs).list({ namespace: 'default' })
    assert.deepEqual(
      items.map(({ status }) => [status?.startTime, status?.succeeded]),
      [
        ['2026-01-01T02:50:00Z', 1],
        ['2026-01-01T02:55:00Z', 1],
        ['2026-01-01T03:00:00Z', 1],
      ],
    )
  }))

const readyOf = async ({ client }: TestCluster, name: string) => {
  const node = await client.of(nodes).get({ name })
  return node.status?.conditions?.find(({ type }) => type === 'Ready')?.status
}

test('KUB-26 the pods of a crashed node are replaced elsewhere, and the node restarts with another boot ID', () =>
  withCluster({ nodes: 2, controllerOptions: {} }, async (cluster) => {
    const { client, until, node } = cluster
    await addDeployment(client, 'web', 2)
    const ready = (count: number) => async () => (await client.of(deployments).get({ namespace: 'default', name: 'web' })).status?.readyReplicas === count
    await until(ready(2))
    const before = await client.of(nodes).get({ name: 'n2' })
    node('n2').crash()
    await until(async () => (await readyOf(cluster, 'n2')) === 'Unknown', 60_000)
    await until(ready(2), 10 * 60_000)
    const { items } = await client.of(pods).list({ namespace: 'default' })
    const alive = items.filter(({ metadata }) => !metadata.deletionTimestamp)
    assert.deepEqual([...new Set(alive.map(({ spec }) => spec.nodeName))], ['n1'])
    node('n2').start()
    await until(async () => (await readyOf(cluster, 'n2')) === 'True', 60_000)
    const after = await client.of(nodes).get({ name: 'n2' })
    assert.notEqual(after.status?.nodeInfo?.bootID, before.status?.nodeInfo?.bootID)
  }))

test('KUB-26 a partitioned node is lost to the cluster and its pods run on; healed, it is back', () =>
  withCluster({}, async (cluster) => {
    const { client, until, node } = cluster
    await client.of(pods).create({ metadata: { namespace: 'default', name: 'lone' }, spec: podSpec() })
    const phase = async () => (await client.of(pods).get({ namespace: 'default', name: 'lone' })).status?.containerStatuses?.[0]
    await until(async () => (await phase())?.ready)
    node('n1').partition()
    await until(async () => (await readyOf(cluster, 'n1')) === 'Unknown', 60_000)
    node('n1').heal()
    await until(async () => (await readyOf(cluster, 'n1')) === 'True', 60_000)
    assert.equal((await phase())?.restartCount, 0)
  }))

test('KUB-26 a node whose runtime fails is not ready, and a killed container restarts', () =>
  withCluster({}, async (cluster) => {
    const { client, until, node, clock } = cluster
    const lone = { namespace: 'default', name: 'lone' }
    await client.of(pods).create({ metadata: lone, spec: podSpec() })
    const state = async () => (await client.of(pods).get(lone)).status?.containerStatuses?.[0]
    await until(async () => (await state())?.ready)
    assert.equal(node('n1').exit(lone, { exitCode: 137, reason: 'OOMKilled' }), 1)
    await until(async () => (await state())?.restartCount === 1 && (await state())?.ready)
    const ended = (await state())?.lastState?.terminated
    assert.deepEqual([ended?.exitCode, ended?.reason], [137, 'OOMKilled'])
    node('n1').notReady('out of order')
    await until(async () => (await readyOf(cluster, 'n1')) === 'False', 60_000)
    node('n1').ready()
    await until(async () => (await readyOf(cluster, 'n1')) === 'True', 60_000)
    await clock.advance(1_000)
  }))

test('KUB-06 a restarted kubelet restores Ready of a pod that a client marks not ready', () =>
  withCluster({}, async ({ client, until, idle, node }) => {
    const lone = { namespace: 'default', name: 'lone' }
    await client.of(pods).create({ metadata: lone, spec: podSpec() })
    const ready = async () => (await client.of(pods).get(lone)).status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True'
    await until(ready)
    node('n1').kubelet.crash()
    node('n1').kubelet.start()
    await idle()
    await client.of(pods).patch(lone, 'strategic', { status: { conditions: [{ type: 'Ready', status: 'False' }] } }, { subresource: 'status' })
    await idle()
    assert.equal(await ready(), true)
  }))

test('KUB-06 the kubelet restores Ready of a ready pod that a client marks not ready', () =>
  withCluster({}, async ({ client, until, idle }) => {
    const lone = { namespace: 'default', name: 'lone' }
    await client.of(pods).create({ metadata: lone, spec: podSpec() })
    const ready = async () => (await client.of(pods).get(lone)).status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True'
    await until(ready)
    await client.of(pods).patch(lone, 'strategic', { status: { conditions: [{ type: 'Ready', status: 'False' }] } }, { subresource: 'status' })
    await idle()
    assert.equal(await ready(), true)
  }))
