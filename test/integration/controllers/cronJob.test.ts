import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cronJobs, jobs } from '#client/builtIn'
import { eventually, startTestCluster } from './cluster.ts'

test('CTL-08 a cron job starts the job of a time that has passed, once, and remembers it', async () => {
  const cluster = await startTestCluster({ controllers: ['cronjob-controller'] })
  const namespace = 'default'
  try {
    const made = await cluster.client.of(cronJobs).create({
      metadata: { namespace, name: 'tick' },
      spec: { schedule: '0 0 1 * *', jobTemplate: { spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'a' }] } } } } },
    })
    // As if it had last run long ago: the last time since then was missed and is made good.
    await cluster.client.of(cronJobs).updateStatus({ ...made, status: { lastScheduleTime: '2025-01-01T00:00:00Z' } })
    const job = await eventually(async () => (await cluster.client.of(jobs).list({ namespace })).items[0] ?? false)
    assert.match(job.metadata.name ?? '', /^tick-\d+$/)
    await eventually(async () => {
      const { status } = await cluster.client.of(cronJobs).get({ namespace, name: 'tick' })
      return status.lastScheduleTime !== '2025-01-01T00:00:00Z' && status.active?.[0]?.uid === job.metadata.uid
    })
    assert.equal((await cluster.client.of(jobs).list({ namespace })).items.length, 1)
  } finally {
    await cluster.close()
  }
})
