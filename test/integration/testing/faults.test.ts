import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { configMaps, deployments, pods } from '#client/builtIn'
import { chaos } from '#testing/chaos'
import { type ClusterOptions, startCluster, type TestCluster } from '#testing/cluster'
import { violations } from '#testing/invariants'
import { addDeployment, addMixedWorkload } from './workloads.ts'

async function withCluster(options: ClusterOptions, use: (cluster: TestCluster) => Promise<void>): Promise<void> {
  const cluster = await startCluster(options)
  try {
    await use(cluster)
  } finally {
    await cluster.close()
  }
}

const namespace = 'default'
const alone = { nodes: 0, controllers: false, scheduler: false } as const
const note = (name: string) => ({ metadata: { namespace, name } })

test('X10 chosen calls are refused, dropped before, or dropped after they take effect', () =>
  withCluster(alone, async ({ client, faults }) => {
    const notes = client.of(configMaps)
    const refusal = faults.refuse({ verb: 'create', resource: 'configmaps', nth: 2 }, 'TooManyRequests')
    await notes.create(note('a'))
    await assert.rejects(notes.create(note('b')), (error) => isStatus(error, 'TooManyRequests'))
    await notes.create(note('b'))
    assert.equal(refusal.hits, 1)
    faults.drop({ verb: 'create', name: '', times: 1 })
    await assert.rejects(notes.create(note('c')), { code: 'ECONNRESET' })
    await assert.rejects(notes.get({ namespace, name: 'c' }), (error) => isStatus(error, 'NotFound'))
    faults.drop({ verb: 'create', times: 1 }, 'answer')
    await assert.rejects(notes.create(note('c')), { code: 'ECONNRESET' })
    assert.equal((await notes.get({ namespace, name: 'c' })).metadata.name, 'c')
    const lasting = faults.refuse({ verb: 'get', namespace, resource: 'configmaps' }, new Error('no luck'))
    await assert.rejects(notes.get({ namespace, name: 'a' }), /no luck/)
    lasting.remove()
    await notes.get({ namespace, name: 'a' })
  }))

test('X10 a delayed call is pending until its time, and the cluster can be idle meanwhile', () =>
  withCluster(alone, async ({ client, faults, clock, idle }) => {
    faults.delay({ verb: 'create', resource: 'configmaps' }, 5_000)
    const done = { at: 0 }
    const creating = client
      .of(configMaps)
      .create(note('slow'))
      .then(() => {
        done.at = clock.monotonicMs()
      })
    const calledAtMs = clock.monotonicMs()
    await idle()
    await clock.advance(4_999)
    assert.equal(done.at, 0)
    await clock.advance(1)
    await creating
    assert.equal(done.at, calledAtMs + 5_000)
  }))

const readyReplicas = async ({ client }: TestCluster, name: string) => (await client.of(deployments).get({ namespace, name })).status?.readyReplicas

test('X10 broken watches and forgotten history go unnoticed', () =>
  withCluster({ nodes: 2 }, async (cluster) => {
    const { client, faults, until, clock } = cluster
    assert.ok(faults.breakWatches({ component: 'kube-controller-manager' }) > 20)
    await addDeployment(client, 'web', 2)
    await until(async () => (await readyReplicas(cluster, 'web')) === 2)
    await clock.advance(40_000)
    faults.drop({ verb: 'watch', times: 200 })
    faults.breakWatches()
    await client.of(deployments).patch({ namespace, name: 'web' }, 'merge', { spec: { replicas: 4 } })
    await cluster.compact()
    await until(async () => (await readyReplicas(cluster, 'web')) === 4)
    assert.deepEqual(await violations(client), [])
  }))

for (const how of ['stop', 'crash'] as const) {
  test(`X10 the API server restarts after a ${how}, and all clients reconnect`, () =>
    withCluster({}, async (cluster) => {
      const { client, until } = cluster
      await addDeployment(client, 'web', 2)
      await cluster.restart('kube-apiserver', how)
      await until(async () => (await readyReplicas(cluster, 'web')) === 2)
      await cluster.stop('kube-apiserver', how)
      await assert.rejects(client.of(pods).list(), { code: 'ECONNREFUSED' })
      await cluster.clock.advance(5_000)
      await cluster.start('kube-apiserver')
      await addDeployment(client, 'more', 1)
      await until(async () => (await readyReplicas(cluster, 'more')) === 1)
    }))
}

test('X10 controllers that die at any of their calls leave nothing twice and nothing undone', () =>
  withCluster({}, async (cluster) => {
    const { client, faults, until } = cluster
    for (let nth = 1; nth <= 5; nth++) {
      for (const when of ['before', 'after'] as const) {
        const name = `web-${nth}-${when}`
        const crash = faults.crashAt('kube-controller-manager', nth, when)
        await addDeployment(client, name, 2)
        await until(async () => crash.hits === 1 && (await readyReplicas(cluster, name)) === 2)
        await client.of(deployments).delete({ namespace, name })
      }
    }
    await until(async () => (await client.of(pods).list({ namespace })).items.length === 0)
    assert.deepEqual(await violations(client), [])
  }))

const seeds = [3, 5]
for (const seed of seeds) {
  test(`X10 X11 after a period of faults the cluster reaches the desired state (seed ${seed})`, () =>
    withCluster({ seed, nodes: 3 }, async (cluster) => {
      const { client, until } = cluster
      await addMixedWorkload(client)
      const done = await chaos(cluster, { seed, forMs: 60_000 })
      const atRest = async () => {
        const wrong = await violations(client)
        if (wrong.length > 0) throw new Error(`${wrong.join('; ')}\nafter:\n${done.join('\n')}`)
        return true
      }
      await until(atRest, 15 * 60_000)
    }))
}
