import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { JobSpec } from '#api/gen/types/batch.v1'
import { isPodActive } from '#api/helpers/pods'
import { jobs, pods } from '#client/builtIn'
import { eventually, startTestCluster, type TestCluster } from './cluster.ts'

let cluster: TestCluster
before(async () => {
  cluster = await startTestCluster({ podsRun: false })
})
after(() => cluster.close())

const namespace = 'default'
const create = (name: string, spec: Partial<JobSpec>) =>
  cluster.client.of(jobs).create({
    metadata: { namespace, name },
    spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'a' }] } }, ...spec } as JobSpec,
  })
const podsOf = async (name: string) => (await cluster.client.of(pods).list({ namespace, labelSelector: `batch.kubernetes.io/job-name=${name}` })).items
const end = async (name: string, phase: 'Succeeded' | 'Failed', count: number) => {
  const active = await eventually(async () => {
    const found = (await podsOf(name)).filter(isPodActive)
    return found.length >= count && found
  })
  for (const { metadata } of active.slice(0, count)) {
    await cluster.client.of(pods).patch({ namespace, name: metadata.name ?? '' }, 'merge', { status: { phase } }, { subresource: 'status' })
  }
}
const conditionOf = (name: string, type: string) =>
  eventually(async () => {
    const { status } = await cluster.client.of(jobs).get({ namespace, name })
    const found = status.conditions?.find((condition) => condition.type === type && condition.status === 'True')
    return found ? { ...found, status_: status } : false
  })

test('CTL-07 a job runs its completions at its parallelism, counts each pod once, and completes', async () => {
  await create('count', { completions: 5, parallelism: 2 })
  await end('count', 'Succeeded', 2)
  await end('count', 'Succeeded', 2)
  await end('count', 'Succeeded', 1)
  const { status_ } = await conditionOf('count', 'Complete')
  assert.equal(status_.succeeded, 5)
  assert.notEqual(status_.completionTime, undefined)
  const all = await podsOf('count')
  assert.equal(all.length, 5)
  await eventually(async () => (await podsOf('count')).every(({ metadata }) => (metadata.finalizers?.length ?? 0) === 0))
})

test('CTL-07 an indexed job gives each pod its index', async () => {
  await create('indexed', { completions: 3, parallelism: 3, completionMode: 'Indexed' })
  await end('indexed', 'Succeeded', 3)
  const { status_ } = await conditionOf('indexed', 'Complete')
  assert.equal(status_.completedIndexes, '0-2')
  assert.deepEqual((await podsOf('indexed')).map(({ spec }) => spec.hostname).sort(), ['indexed-0', 'indexed-1', 'indexed-2'])
})

test('CTL-07 beyond backoffLimit the job fails and its pods go', async () => {
  await create('fails', { parallelism: 2, completions: 2, backoffLimit: 0 })
  await end('fails', 'Failed', 1)
  const failed = await eventually(async () => {
    const { status } = await cluster.client.of(jobs).get({ namespace, name: 'fails' })
    return status.conditions?.find(({ type }) => type === 'FailureTarget') ?? false
  })
  assert.deepEqual([failed.reason, failed.message], ['BackoffLimitExceeded', 'Job has reached the specified backoff limit'])
  for (const { metadata } of await podsOf('fails')) {
    if (metadata.deletionTimestamp) await cluster.client.of(pods).delete({ namespace, name: metadata.name ?? '' }, { gracePeriodSeconds: 0 })
  }
  const { reason } = await conditionOf('fails', 'Failed')
  assert.equal(reason, 'BackoffLimitExceeded')
})

test('CTL-07 a suspended job has no pods until it is resumed', async () => {
  await create('waits', { suspend: true })
  await conditionOf('waits', 'Suspended')
  assert.equal((await podsOf('waits')).length, 0)
  await cluster.client.of(jobs).patch({ namespace, name: 'waits' }, 'merge', { spec: { suspend: false } })
  await end('waits', 'Succeeded', 1)
  await conditionOf('waits', 'Complete')
})

test('CTL-07 podFailurePolicy: FailJob ends the job at once, with the rule in its condition', async () => {
  const rules = [{ action: 'FailJob', onPodConditions: [{ type: 'ConfigIssue', status: 'True' }] }]
  await create('policy', { backoffLimit: 6, podFailurePolicy: { rules } })
  const [pod] = await eventually(async () => {
    const found = await podsOf('policy')
    return found.length > 0 && found
  })
  const name = pod?.metadata.name ?? ''
  const status = { phase: 'Failed', conditions: [{ type: 'ConfigIssue', status: 'True' }] }
  await cluster.client.of(pods).patch({ namespace, name }, 'merge', { status }, { subresource: 'status' })
  const { reason, message, status_ } = await conditionOf('policy', 'Failed')
  assert.deepEqual([reason, message], ['PodFailurePolicy', `Pod default/${name} has condition ConfigIssue matching FailJob rule at index 0`])
  assert.equal(status_.failed, 1)
})

test('CTL-07 successPolicy: the leader decides, the other pods go', async () => {
  const successPolicy = { rules: [{ succeededIndexes: '0' }] }
  await create('leader', { completions: 3, parallelism: 3, completionMode: 'Indexed', successPolicy })
  const leader = await eventually(async () => {
    const all = await podsOf('leader')
    return all.length === 3 && (all.find(({ spec }) => spec.hostname === 'leader-0') ?? false)
  })
  const ref = { namespace, name: leader.metadata.name ?? '' }
  await cluster.client.of(pods).patch(ref, 'merge', { status: { phase: 'Succeeded' } }, { subresource: 'status' })
  const met = await conditionOf('leader', 'SuccessCriteriaMet')
  assert.deepEqual([met.reason, met.message], ['SuccessPolicy', 'Matched rules at index 0'])
  await conditionOf('leader', 'Complete')
  assert.deepEqual((await podsOf('leader')).filter(isPodActive), [])
})

test('CTL-07 pods that a smaller parallelism or a pause removes are not failures', async () => {
  await create('shrinks', { completions: 4, parallelism: 4 })
  await eventually(async () => (await podsOf('shrinks')).length === 4)
  await cluster.client.of(jobs).patch({ namespace, name: 'shrinks' }, 'merge', { spec: { parallelism: 1 } })
  await eventually(async () => (await podsOf('shrinks')).filter(isPodActive).length === 1)
  await cluster.client.of(jobs).patch({ namespace, name: 'shrinks' }, 'merge', { spec: { suspend: true } })
  const { status_ } = await conditionOf('shrinks', 'Suspended')
  assert.equal(status_.failed, undefined)
})

test('CTL-20 a finished job is deleted after its time to live, with its pods', async () => {
  await create('short', { ttlSecondsAfterFinished: 0 })
  await end('short', 'Succeeded', 1)
  await eventually(async () => (await cluster.client.of(jobs).list({ namespace })).items.every(({ metadata }) => metadata.name !== 'short'))
  await eventually(async () => (await podsOf('short')).length === 0)
})
