/** The operator's test: a whole cluster in this process, whose time it moves. Run it with: node --test */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { customResourceDefinitions, hasCondition, jobs, seededRandom, waitFor } from 'skiff-kubernetes/client'
import { runControllers } from 'skiff-kubernetes/controller'
import { type ClusterOptions, startCluster, type TestCluster } from 'skiff-kubernetes/testing'
import { backupController, backupDefinition, backups } from './backupOperator.ts'

const ref = { namespace: 'default', name: 'db' }

async function withOperator(options: ClusterOptions, use: (cluster: TestCluster, restart: () => Promise<void>) => Promise<void>): Promise<void> {
  await using cluster = await startCluster(options)
  const { client, clock, log } = cluster
  const deps = { client, clock, random: seededRandom(1), log }
  const controller = backupController(() => clock.now())
  let stop = new AbortController()
  const start = () => {
    stop = new AbortController()
    return runControllers(deps, [controller], {}, stop.signal)
  }
  await client.of(customResourceDefinitions).create(backupDefinition)
  await waitFor(client.of(customResourceDefinitions), { name: 'backups.example.com' }, hasCondition('Established'), deps, AbortSignal.timeout(60_000))
  let running = start()
  const end = () => {
    stop.abort(new Error('stopped by the test'))
    return running
  }
  try {
    await use(cluster, async () => {
      await end()
      running = start()
    })
  } finally {
    await end()
  }
}

const jobsOf = async ({ client }: TestCluster) => (await client.of(jobs).list({ namespace: 'default' })).items

test('user need 50: it runs a Job every hour, keeps three, and says so', () =>
  withOperator({}, async (cluster) => {
    await cluster.client.of(backups).create({ metadata: ref, spec: { everySeconds: 3_600, image: 'example.com/backup:1' } })
    await cluster.clock.advance(5 * 3_600_000 + 60_000)
    assert.equal((await jobsOf(cluster)).length, 3)
    const { status } = await cluster.client.of(backups).get(ref)
    assert.equal(status?.succeeded, 3)
    assert.match(status?.lastRunTime ?? '', /^2026-01-01T05:00:/)
  }))

test('user need 50: restarts, refused calls and a Job that fails make no second Job and lose none', () =>
  withOperator(
    {
      profile: {
        // The first run of one Job fails.
        behave: ({ podName }) => (podName.includes('490897') ? { exitAfterMs: 1_000, exitCode: 1 } : {}),
      },
    },
    async (cluster, restart) => {
      const { client, clock, faults } = cluster
      await client.of(backups).create({ metadata: ref, spec: { everySeconds: 3_600, image: 'example.com/backup:1' } })
      const seen = new Set<string>()
      for (let quarter = 0; quarter < 16; quarter++) {
        faults.refuse({ component: 'test', verb: 'create', resource: 'jobs', times: 2 }, 'TooManyRequests')
        faults.drop({ component: 'test', verb: 'create', resource: 'jobs', times: 1 }, 'answer')
        await restart()
        await clock.advance(900_000)
        for (const { metadata } of await jobsOf(cluster)) seen.add(metadata.name ?? '')
      }
      faults.clear()
      await clock.advance(60_000)
      for (const { metadata } of await jobsOf(cluster)) seen.add(metadata.name ?? '')
      assert.equal(seen.size, 4 + 1, [...seen].join(' '))
    },
  ))

test('user need 50: deleting the Backup takes its Jobs along', () =>
  withOperator({}, async (cluster) => {
    await cluster.client.of(backups).create({ metadata: ref, spec: { everySeconds: 60, image: 'example.com/backup:1' } })
    await cluster.clock.advance(150_000)
    assert.ok((await jobsOf(cluster)).length > 0)
    await cluster.client.of(backups).delete(ref, { propagationPolicy: 'Background' })
    await cluster.clock.advance(60_000)
    assert.deepEqual(await jobsOf(cluster), [])
  }))
