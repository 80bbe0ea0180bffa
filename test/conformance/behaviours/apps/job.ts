/** Work that ends. Upstream: test/e2e/apps/{job,cronjob}.go. */
import assert from 'node:assert/strict'
import type { Job, JobSpec } from '#api/gen/types/batch.v1'
import type { Frozen } from '#api/machinery/meta'
import { cronJobs, jobs, pods } from '#client/builtIn'
import { type BehaviourGroup, table } from '../behaviour.ts'
import type { BehaviourContext, PodInput } from '../context.ts'
import { templateOf, writesStatus } from '../workloads.ts'

const labels = { job: 'yes' }
const ref = ({ namespace }: BehaviourContext) => ({ namespace, name: 'work' })

const create = ({ create: make }: BehaviourContext, pod: PodInput, spec: Partial<JobSpec> = {}, restartPolicy = 'Never') =>
  make(jobs, { metadata: { name: 'work' }, spec: { template: templateOf(labels, { ...pod, spec: { restartPolicy, ...pod.spec } }), ...spec } })

const condition = (job: Frozen<Job>, type: string) => job.status?.conditions?.find((one) => one.type === type && one.status === 'True')
const ends = (context: BehaviourContext, type: 'Complete' | 'Failed') =>
  context.waitForObject(jobs, 'work', `is ${type}`, (job) => {
    const other = condition(job, type === 'Complete' ? 'Failed' : 'Complete')
    if (other) throw new Error(`the job is ${other.type}: ${JSON.stringify(job.status)}`)
    return condition(job, type) !== undefined
  })

const members = async ({ client, namespace }: BehaviourContext) => (await client.of(pods).list({ namespace, labelSelector: 'job=yes' })).items
const active = (context: BehaviourContext, count: number) =>
  context.waitForObject(jobs, 'work', `has ${count} active`, ({ status }) => status?.active === count && status.ready === count)

const indexed = { completionMode: 'Indexed', completions: 4, parallelism: 4 }
/** Fails the even ones. */
const oddOnly = 'exit $(( (JOB_COMPLETION_INDEX + 1) % 2 ))'

/** With a policy of success the first of these is enough. */
const successes = [
  { name: 'successPolicy: all indexes', policy: undefined, rules: [{ succeededIndexes: '0-1' }], completions: 2, script: 'exit 0', succeeded: 2 },
  {
    name: 'successPolicy: succeededIndexes',
    policy: 0,
    rules: [{ succeededIndexes: '0' }],
    completions: 5,
    script: '[ $JOB_COMPLETION_INDEX = 0 ] || sleep 600',
    succeeded: 1,
  },
  {
    name: 'successPolicy: succeededCount',
    policy: 1,
    rules: [{ succeededCount: 1, succeededIndexes: '0-4' }],
    completions: 5,
    script: '[ $JOB_COMPLETION_INDEX = 3 ] || sleep 600',
    succeeded: 1,
  },
] as const

export const job: BehaviourGroup = {
  sig: 'sig-apps',
  title: 'Job',
  rows: ['CTL-07'],
  behaviours: [
    {
      name: 'local restart until complete',
      run: async (context) => {
        const script = 'if [ -f /data/ran ]; then exit 0; fi; touch /data/ran; exit 1'
        const pod = { script, container: { volumeMounts: [{ name: 'data', mountPath: '/data' }] }, spec: { volumes: [{ name: 'data', emptyDir: {} }] } }
        await create(context, pod, { completions: 2, parallelism: 2 }, 'OnFailure')
        const { status } = await ends(context, 'Complete')
        assert.equal(status?.succeeded, 2)
        for (const { status: seen } of await members(context)) assert.equal(seen?.containerStatuses?.[0]?.restartCount, 1)
      },
    },
    {
      name: 'delete with graceful pods',
      run: async (context) => {
        await create(context, { script: 'sleep 600' }, { parallelism: 2, completions: 4 })
        await active(context, 2)
        await context.client.of(jobs).delete(ref(context), { propagationPolicy: 'Foreground' })
        await context.waitUntilGone(jobs, 'work')
        assert.deepEqual(await members(context), [])
      },
    },
    {
      name: 'adopt orphan, release relabelled',
      run: async (context) => {
        const { client, namespace } = context
        const job = await create(context, { script: 'sleep 600' }, { parallelism: 2, completions: 4 })
        await active(context, 2)
        const [pod] = await members(context)
        const at = { namespace, name: pod?.metadata.name ?? '' }
        const owner = async () => (await client.of(pods).get(at)).metadata.ownerReferences?.find(({ controller }) => controller)?.uid
        const owned = (uid: string | undefined) => context.eventually(`owner ${uid}`, owner, (seen) => seen === uid)
        await client.of(pods).patch(at, 'merge', { metadata: { ownerReferences: null } })
        await owned(job.metadata.uid)
        const all = Object.keys(pod?.metadata.labels ?? {})
        await client.of(pods).patch(at, 'merge', { metadata: { labels: Object.fromEntries(all.map((label) => [label, null])) } })
        await owned(undefined)
        context.cleanUp(() => client.of(pods).delete(at, { gracePeriodSeconds: 0 }))
      },
    },
    {
      name: 'failure policy fails early on exit code',
      run: async (context) => {
        const rules = [{ action: 'FailJob', onExitCodes: { containerName: 'main', operator: 'In', values: [42] } }]
        await create(context, { script: 'exit 42' }, { backoffLimit: 6, podFailurePolicy: { rules } })
        const failed = await ends(context, 'Failed')
        assert.equal(condition(failed, 'Failed')?.reason, 'PodFailurePolicy')
        assert.equal(failed.status?.failed, 1)
      },
    },
    {
      name: 'failure policy ignores DisruptionTarget',
      run: async (context) => {
        const { client, namespace } = context
        const rules = [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] }]
        // The first pod waits to be evicted; the next finds what the first has written.
        const [node = ''] = context.nodes
        const script = 'if [ -f /data/first ]; then rm /data/first; exit 0; fi; touch /data/first; trap "exit 1" TERM; sleep 600 & wait'
        const volumes = [{ name: 'data', hostPath: { path: `/tmp/${context.namespace}`, type: 'DirectoryOrCreate' } }]
        const pod = { script, container: { volumeMounts: [{ name: 'data', mountPath: '/data' }] }, spec: { volumes, nodeName: node } }
        await create(context, pod, { backoffLimit: 0, podFailurePolicy: { rules } })
        await active(context, 1)
        const [first] = await members(context)
        const name = first?.metadata.name ?? ''
        await context.eventually(
          'its trap',
          () => context.exec(name, ['test', '-f', '/data/first']),
          ({ code }) => code === 0,
        )
        await client.of(pods).createSubresource({ namespace, name }, 'eviction', { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } })
        const { status } = await ends(context, 'Complete')
        assert.deepEqual([status?.succeeded, status?.failed ?? 0], [1, 0])
      },
    },
    {
      name: 'Indexed: index annotation, env, hostname',
      run: async (context) => {
        const script = 'echo $JOB_COMPLETION_INDEX $(hostname)'
        await create(context, { script }, indexed)
        const { status } = await ends(context, 'Complete')
        assert.equal(status?.completedIndexes, '0-3')
        for (const { metadata } of await members(context)) {
          const index = metadata.annotations?.['batch.kubernetes.io/job-completion-index']
          assert.equal(metadata.labels?.['batch.kubernetes.io/job-completion-index'], index)
          assert.equal(await context.logs(metadata.name ?? ''), `${index} work-${index}`)
        }
      },
    },
    {
      name: 'backoffLimitPerIndex runs all indexes',
      run: async (context) => {
        await create(context, { script: oddOnly }, { ...indexed, backoffLimitPerIndex: 1 })
        const failed = await ends(context, 'Failed')
        assert.equal(condition(failed, 'Failed')?.reason, 'FailedIndexes')
        assert.deepEqual([failed.status?.failedIndexes, failed.status?.completedIndexes], ['0,2', '1,3'])
        assert.deepEqual([failed.status?.failed, failed.status?.succeeded], [4, 2])
      },
    },
    {
      name: 'maxFailedIndexes stops the job',
      run: async (context) => {
        const script = '[ $JOB_COMPLETION_INDEX -lt 2 ] && exit 1; sleep 600'
        await create(context, { script }, { ...indexed, backoffLimitPerIndex: 0, maxFailedIndexes: 1 })
        const failed = await ends(context, 'Failed')
        assert.equal(condition(failed, 'Failed')?.reason, 'MaxFailedIndexesExceeded')
        // Those that were stopped then have failed, too.
        assert.match(failed.status?.failedIndexes ?? '', /^0(,1$|-)/)
        assert.equal(failed.status?.completedIndexes ?? '', '')
      },
    },
    {
      name: 'FailIndex action',
      run: async (context) => {
        const rules = [{ action: 'FailIndex', onExitCodes: { operator: 'In', values: [42] } }]
        const script = '[ $JOB_COMPLETION_INDEX = 0 ] && exit 42; exit 0'
        await create(context, { script }, { ...indexed, completions: 2, parallelism: 2, backoffLimitPerIndex: 1, podFailurePolicy: { rules } })
        const failed = await ends(context, 'Failed')
        assert.deepEqual([failed.status?.failedIndexes, failed.status?.completedIndexes, failed.status?.failed], ['0', '1', 1])
      },
    },
    ...table(successes, ({ name, rules, completions, script, succeeded }) => ({
      name,
      run: async (context) => {
        await create(context, { script }, { completionMode: 'Indexed', completions, parallelism: completions, successPolicy: { rules: [...rules] } })
        const done = await ends(context, 'Complete')
        assert.equal(condition(done, 'SuccessCriteriaMet')?.reason, 'SuccessPolicy')
        assert.equal(condition(done, 'Complete')?.reason, 'SuccessPolicy')
        assert.equal(done.status?.succeeded, succeeded)
      },
    })),
    {
      name: 'status patch/update',
      run: async (context) => {
        await create(context, { script: 'sleep 600' }, { parallelism: 1 })
        await active(context, 1)
        await writesStatus(context, jobs, 'work')
      },
    },
  ],
}

const everyMinute = '*/1 * * * ?'
const jobsOf = async ({ client, namespace }: BehaviourContext) =>
  (await client.of(jobs).list({ namespace })).items.filter(({ metadata }) => !metadata.deletionTimestamp)

const policies = [
  { name: 'Allow runs several', policy: 'Allow', holds: (names: readonly string[]) => names.length >= 2 },
  { name: 'Replace starts the newer job', policy: 'Replace', holds: (names: readonly string[], first: string) => names.length === 1 && names[0] !== first },
] as const

const createCron = (context: BehaviourContext, concurrencyPolicy: string) =>
  context.create(cronJobs, {
    metadata: { name: 'often' },
    spec: {
      schedule: everyMinute,
      concurrencyPolicy,
      jobTemplate: { spec: { template: templateOf(labels, { script: 'sleep 600', spec: { restartPolicy: 'OnFailure' } }) } },
    },
  })

const firstJob = async (context: BehaviourContext) => {
  const [first] = await context.eventually(
    'the first job',
    () => jobsOf(context),
    (seen) => seen.length > 0,
  )
  return first?.metadata.name ?? ''
}

export const cronJob: BehaviourGroup = {
  sig: 'sig-apps',
  title: 'CronJob',
  rows: ['CTL-08'],
  behaviours: [
    ...table(policies, ({ name, policy, holds }) => ({
      name,
      seconds: 240,
      run: async (context) => {
        await createCron(context, policy)
        const first = await firstJob(context)
        await context.eventually(
          'what comes a minute later',
          async () => (await jobsOf(context)).map(({ metadata }) => metadata.name ?? ''),
          (names) => holds(names, first),
        )
      },
    })),
    {
      name: 'Forbid keeps one job',
      seconds: 240,
      run: async (context) => {
        await createCron(context, 'Forbid')
        const first = await firstJob(context)
        // An event reports the skipped run, and the first job keeps running.
        await context.eventually(
          'the event of the job that is left out',
          () => context.kubectl(['get', 'events', '-o', 'jsonpath={.items[*].reason}']),
          (reasons) => reasons.includes('JobAlreadyActive'),
        )
        assert.deepEqual(
          (await jobsOf(context)).map(({ metadata }) => metadata.name),
          [first],
        )
      },
    },
  ],
}
