/**
 * One workload of each kind, changed in the middle, under faults that follow from a seed: once they are over the cluster reaches the desired state.
 * A few seeds; SKIFF_CHAOS=N or N-M tries those.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { daemonSets, deployments, jobs, pods, statefulSets } from '#client/builtIn'
import type { Client } from '#client/client'
import { chaos } from '#testing/chaos'
import { startCluster } from '#testing/cluster'
import { violations } from '#testing/invariants'
import { addMixedWorkload } from '../integration/testing/workloads.ts'

const namespace = 'default'
const template = { spec: { containers: [{ name: 'main', image: 'example.com/app:2' }] } }

/** A rollout of everything that can be rolled out, and less of what can be less. */
async function change(client: Client): Promise<void> {
  await client.of(deployments).patch({ namespace, name: 'web' }, 'strategic', { spec: { template, replicas: 5 } })
  await client.of(statefulSets).patch({ namespace, name: 'db' }, 'strategic', { spec: { template, replicas: 3 } })
  await client.of(daemonSets).patch({ namespace, name: 'agent' }, 'strategic', { spec: { template } })
}

async function checkUpdated(client: Client): Promise<void> {
  const all = (await client.of(pods).list({ namespace })).items.filter(({ metadata }) => metadata.labels?.app)
  const old = all.filter(({ spec }) => spec.containers[0]?.image !== 'example.com/app:2').map(({ metadata }) => metadata.name)
  assert.deepEqual(old, [])
  const daemon = (await client.of(daemonSets).get({ namespace, name: 'agent' })).status
  assert.deepEqual([daemon.numberAvailable, daemon.updatedNumberScheduled, daemon.numberMisscheduled], [3, 3, 0])
  const stateful = (await client.of(statefulSets).get({ namespace, name: 'db' })).status
  assert.deepEqual([stateful?.updatedReplicas, stateful?.availableReplicas], [3, 3])
  const { status } = await client.of(jobs).get({ namespace, name: 'batch' })
  assert.deepEqual(
    status.conditions?.filter((condition) => condition.status === 'True' && ['Complete', 'Failed'].includes(condition.type)).length,
    1,
    'the job is over',
  )
}

for (const seed of seedsOf(process.env.SKIFF_CHAOS)) {
  test(`X10 X11 workloads that change during faults reach the desired state (SKIFF_CHAOS=${seed})`, { timeout: 10 * 60_000 }, async () => {
    const cluster = await startCluster({ seed, nodes: 3 })
    try {
      const { client, until } = cluster
      await addMixedWorkload(client)
      const done = await chaos(cluster, { seed, forMs: 40_000 })
      await change(client)
      done.push('changed', ...(await chaos(cluster, { seed: seed + 1_000_000, forMs: 40_000 })))
      try {
        await until(async () => {
          assert.deepEqual(await violations(client), [])
          await checkUpdated(client)
          return true
        }, 20 * 60_000)
      } catch (cause) {
        throw new Error(`${cause instanceof Error ? cause.message : cause}\nafter:\n${done.join('\n')}`, { cause })
      }
    } finally {
      await cluster.close()
    }
  })
}

function seedsOf(text: string | undefined): number[] {
  if (text === undefined) return [1, 2, 3, 4]
  const range = /^(\d+)(?:-(\d+))?$/.exec(text)
  if (!range) throw new Error(`SKIFF_CHAOS=${text}: want a number or a range such as 1-200`)
  const first = Number(range[1])
  return Array.from({ length: Number(range[2] ?? first) - first + 1 }, (_, i) => first + i)
}
