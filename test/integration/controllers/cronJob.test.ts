/** CronJobs on a whole cluster under virtual time: what starts, when, and what is said of what does not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CronJobSpec } from '#api/gen/types/batch.v1'
import { formatTime } from '#base/time'
import { cronJobs, events, jobs } from '#client/builtIn'
import { type ClusterOptions, startCluster, type TestCluster } from '#testing/cluster'

const namespace = 'default'
const minuteMs = 60_000

async function withCluster(options: ClusterOptions, use: (cluster: TestCluster) => Promise<void>): Promise<void> {
  const cluster = await startCluster(options)
  try {
    await use(cluster)
  } finally {
    await cluster.close()
  }
}

const alone: ClusterOptions = { nodes: 0, scheduler: false, controllers: ['cronjob-controller', 'job-controller', 'garbage-collector-controller'] }

/** Its jobs run for so many seconds. */
async function addCronJob({ client }: TestCluster, spec: Partial<CronJobSpec>, seconds = 1): Promise<void> {
  const annotations = { 'skiff.dev/simulated-exit-after-seconds': String(seconds) }
  const template = { metadata: { annotations }, spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'example.com/task:1' }] } }
  await client.of(cronJobs).create({ metadata: { namespace, name: 'tick' }, spec: { schedule: '* * * * *', jobTemplate: { spec: { template } }, ...spec } })
}

const patchSpec = ({ client }: TestCluster, spec: Partial<CronJobSpec>) => client.of(cronJobs).patch({ namespace, name: 'tick' }, 'merge', { spec })
const statusOf = async ({ client }: TestCluster) => (await client.of(cronJobs).get({ namespace, name: 'tick' })).status
const jobsOf = async ({ client }: TestCluster) => (await client.of(jobs).list({ namespace })).items

/** Scheduled times of the jobs that there are. */
const timesOf = async (cluster: TestCluster) =>
  (await jobsOf(cluster)).map(({ metadata }) => metadata.annotations?.['batch.kubernetes.io/cronjob-scheduled-timestamp'] ?? '').sort()
const reasonsOf = async ({ client }: TestCluster) =>
  new Set((await client.of(events).list({ namespace })).items.filter(({ involvedObject }) => involvedObject.kind === 'CronJob').map(({ reason }) => reason))

/** SKIFF_CRON_HOURS=24 runs a day. */
const hours = Number(process.env.SKIFF_CRON_HOURS ?? 2)

test('CTL-08 a job every five minutes starts once per time for hours, and the controller never lists again', (t) =>
  withCluster({ recordHistory: true }, async (cluster) => {
    const begin = cluster.clock.now()
    await addCronJob(cluster, { schedule: '*/5 * * * *' })
    const component = 'kube-controller-manager'
    const lists = ['jobs', 'cronjobs'].map((resource) => cluster.faults.delay({ component, verb: 'list', resource }, 0))
    const creates = cluster.faults.delay({ component, verb: 'create', resource: 'jobs' }, 0)
    const startedMs = performance.now()
    await cluster.clock.advance(hours * 60 * minuteMs + 10_000)
    t.diagnostic(`${hours} hours took ${Math.round(performance.now() - startedMs)} ms`)
    assert.deepEqual(
      lists.map(({ hits }) => hits),
      [0, 0],
    )
    assert.equal(creates.hits, hours * 12)
    const made = new Set(cluster.history().flatMap(({ key }) => /^\/registry\/jobs\/default\/(tick-\d+)$/.exec(key)?.[1] ?? []))
    assert.equal(made.size, hours * 12)
    // The default limit keeps three.
    const at = (minutes: number) => formatTime(Math.floor(begin / minuteMs) * minuteMs + minutes * minuteMs)
    assert.deepEqual(
      await timesOf(cluster),
      [10, 5, 0].map((before) => at(hours * 60 - before)),
    )
    const status = await statusOf(cluster)
    assert.deepEqual([status.lastScheduleTime, status.active], [at(hours * 60), undefined])
  }))

test('CTL-08 concurrencyPolicy Allow runs jobs concurrently, Forbid waits for the end, Replace deletes the running job', async () => {
  const after = (concurrencyPolicy: string, check: (cluster: TestCluster) => Promise<void>) =>
    withCluster({}, async (cluster) => {
      await addCronJob(cluster, { concurrencyPolicy }, 90)
      // A little after the second minute; the first job is still at work.
      await cluster.clock.advance(2 * minuteMs + 5_000)
      await check(cluster)
    })
  await after('Allow', async (cluster) => {
    assert.equal((await statusOf(cluster)).active?.length, 2)
  })
  await after('Replace', async (cluster) => {
    assert.deepEqual(await timesOf(cluster), ['2026-01-01T00:02:00Z'])
    assert.equal((await statusOf(cluster)).active?.length, 1)
  })
  await after('Forbid', async (cluster) => {
    assert.deepEqual(await timesOf(cluster), ['2026-01-01T00:01:00Z'])
    assert.ok((await reasonsOf(cluster)).has('JobAlreadyActive'))
    // The one that had to wait starts as soon as it can.
    await cluster.clock.advance(40_000)
    assert.deepEqual(await timesOf(cluster), ['2026-01-01T00:01:00Z', '2026-01-01T00:02:00Z'])
  })
})

test('CTL-08 after missed start times only the latest is started, and only within startingDeadlineSeconds', async () => {
  const resumed = (spec: Partial<CronJobSpec>, check: (cluster: TestCluster) => Promise<void>) =>
    withCluster(alone, async (cluster) => {
      await addCronJob(cluster, { suspend: true, ...spec })
      await cluster.clock.advance(120.5 * minuteMs)
      assert.deepEqual(await jobsOf(cluster), [])
      await patchSpec(cluster, { suspend: false })
      await cluster.idle()
      await check(cluster)
    })
  await resumed({}, async (cluster) => {
    assert.deepEqual(await timesOf(cluster), ['2026-01-01T02:00:00Z'])
    await cluster.clock.advance(1_000)
    assert.ok((await reasonsOf(cluster)).has('TooManyMissedTimes'))
  })
  await resumed({ startingDeadlineSeconds: 120 }, async (cluster) => {
    assert.deepEqual(await timesOf(cluster), ['2026-01-01T02:00:00Z'])
    assert.ok(!(await reasonsOf(cluster)).has('TooManyMissedTimes'))
  })
  await resumed({ startingDeadlineSeconds: 20 }, async (cluster) => {
    assert.deepEqual(await timesOf(cluster), [])
    await cluster.clock.advance(minuteMs)
    assert.deepEqual(await timesOf(cluster), ['2026-01-01T02:01:00Z'])
  })
})

test('CTL-08 a new schedule counts from its next time, an interval from the last job', () =>
  withCluster(alone, async (cluster) => {
    await addCronJob(cluster, { schedule: '0 0 * * *' })
    await cluster.clock.advance(10.5 * minuteMs)
    await patchSpec(cluster, { schedule: '*/5 * * * *' })
    await cluster.idle()
    assert.deepEqual(await timesOf(cluster), [])
    await cluster.clock.advance(5 * minuteMs)
    assert.deepEqual(await timesOf(cluster), ['2026-01-01T00:15:00Z'])
    await patchSpec(cluster, { schedule: '@every 7m' })
    await cluster.restart('kube-controller-manager')
    await cluster.clock.advance(7 * minuteMs)
    assert.deepEqual(await timesOf(cluster), ['2026-01-01T00:15:00Z', '2026-01-01T00:22:00Z'])
  }))

test('CTL-08 a deleted job leaves status.active, and a job missing from it is added with an event', () =>
  withCluster(alone, async (cluster) => {
    const { client, clock } = cluster
    await addCronJob(cluster, {})
    await clock.advance(minuteMs + 1_000)
    const [first] = await jobsOf(cluster)
    await client.of(jobs).delete({ namespace, name: first?.metadata.name ?? '' }, { propagationPolicy: 'Background' })
    await clock.advance(1_000)
    assert.ok((await reasonsOf(cluster)).has('MissingJob'))
    assert.equal((await statusOf(cluster)).active, undefined)
    // The job of the next minute is made, and then its maker dies.
    cluster.faults.refuse({ component: 'kube-controller-manager', resource: 'cronjobs', subresource: 'status', verb: 'update', times: 1 })
    await clock.advance(minuteMs)
    const [second] = await jobsOf(cluster)
    const status = await statusOf(cluster)
    assert.deepEqual([status.lastScheduleTime, status.active?.map(({ name }) => name)], ['2026-01-01T00:02:00Z', [second?.metadata.name]])
    await clock.advance(1_000)
    assert.ok((await reasonsOf(cluster)).has('UnexpectedJob'))
  }))

test('CTL-08 history limits keep the latest of the ended jobs', () =>
  withCluster({}, async (cluster) => {
    await addCronJob(cluster, { successfulJobsHistoryLimit: 1 })
    await cluster.clock.advance(4 * minuteMs + 30_000)
    assert.deepEqual(await timesOf(cluster), ['2026-01-01T00:04:00Z'])
    const reasons = await reasonsOf(cluster)
    for (const reason of ['SuccessfulCreate', 'SawCompletedJob', 'SuccessfulDelete']) assert.ok(reasons.has(reason), reason)
    assert.equal((await statusOf(cluster)).lastSuccessfulTime?.startsWith('2026-01-01T00:04:'), true)
  }))
