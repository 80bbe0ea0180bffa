import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CronJob, Job, JobSpec, JobStatus } from '#api/gen/types/batch.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { deepCopy } from '#base/frozen'
import { seededRandom } from '#base/random'
import { cronJob } from './cronJob.ts'
import { job } from './job.ts'

const path = FieldPath.of()
const context = { nowMs: 0, random: seededRandom(1) }
const texts = (errors: readonly { field: string; body: string }[] = []) => errors.map((error) => `${error.field}: ${error.body}`)

function subject(spec: object = {}, status: JobStatus = {}): Job {
  const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'a' }] } }
  const made = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'j', uid: 'u' }, spec: { template, ...spec }, status: {} } as unknown as Job
  job.defaults?.(made, 'v1')
  job.prepareForCreate?.({ obj: made, path, context })
  made.status = status
  return made
}

test('API-17 a job’s defaults, labels and selector', () => {
  const { metadata, spec } = subject()
  const { template, ...rest } = spec
  const labels = { 'controller-uid': 'u', 'job-name': 'j', 'batch.kubernetes.io/controller-uid': 'u', 'batch.kubernetes.io/job-name': 'j' }
  assert.deepEqual(rest, {
    completions: 1,
    parallelism: 1,
    backoffLimit: 6,
    completionMode: 'NonIndexed',
    suspend: false,
    podReplacementPolicy: 'TerminatingOrFailed',
    manualSelector: false,
    selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': 'u' } },
  })
  assert.deepEqual([template.metadata?.labels, metadata.labels], [labels, undefined])
  assert.deepEqual(subject({ backoffLimitPerIndex: 1, completionMode: 'Indexed', completions: 1 }).spec.backoffLimit, 2_147_483_647)
  assert.deepEqual(subject({ podFailurePolicy: { rules: [] } }).spec.podReplacementPolicy, 'Failed')
})

const indexed = { completionMode: 'Indexed', completions: 5 }
const rule = (fields: object) => ({ podFailurePolicy: { rules: [fields] } })
const success = (fields: object) => ({ ...indexed, successPolicy: { rules: [fields] } })
const at = 'spec.podFailurePolicy.rules[0]'
const cases: [name: string, spec: object, want: string[]][] = [
  ['good', {}, []],
  ['negative', { completions: -1 }, ['spec.completions: Invalid value: -1: must be greater than or equal to 0']],
  ['max failures need a limit', { ...indexed, maxFailedIndexes: 1 }, ['spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified']],
  ['managedBy', { managedBy: 'me' }, ['spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")']],
  ['mode', { completionMode: 'Some' }, ['spec.completionMode: Unsupported value: "Some": supported values: "Indexed", "NonIndexed"']],
  ['limit without indexes', { backoffLimitPerIndex: 1 }, ['spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode']],
  [
    'too parallel',
    { ...indexed, parallelism: 100_001 },
    ['spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed'],
  ],
  [
    'more failures than indexes',
    { ...indexed, backoffLimitPerIndex: 1, maxFailedIndexes: 6 },
    ['spec.maxFailedIndexes: Invalid value: 6: must be less than or equal to completions'],
  ],
  [
    'many completions',
    { completionMode: 'Indexed', completions: 100_001, parallelism: 10_001, backoffLimitPerIndex: 1 },
    [
      'spec.maxFailedIndexes: Required value: must be specified when completions is above 100000',
      'spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index',
    ],
  ],
  ['an action', rule({ onPodConditions: [{ type: 'A' }] }), [`${at}.action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]`]],
  [
    'FailIndex',
    rule({ action: 'FailIndex', onPodConditions: [{ type: 'A' }] }),
    [`${at}.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set`],
  ],
  ['a rule about nothing', rule({ action: 'Count' }), [`${at}: Invalid value: specifying one of OnExitCodes and OnPodConditions is required`]],
  [
    'exit codes',
    rule({ action: 'Count', onExitCodes: { operator: 'In', containerName: 'x', values: [3, 0, 3] } }),
    [
      `${at}.onExitCodes.containerName: Invalid value: "x": must be one of the container or initContainer names in the pod template`,
      `${at}.onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator`,
      `${at}.onExitCodes.values[2]: Duplicate value: 3`,
      `${at}.onExitCodes.values: Invalid value: [3,0,3]: must be ordered`,
    ],
  ],
  [
    'a policy replaces the failed only',
    { podFailurePolicy: { rules: [] }, podReplacementPolicy: 'TerminatingOrFailed' },
    ['spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"'],
  ],
  [
    'success without rules',
    { ...indexed, successPolicy: { rules: [] } },
    ['spec.successPolicy.rules: Required value: at least one rules must be specified when the successPolicy is specified'],
  ],
  ['success rule', success({}), ['spec.successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified']],
  [
    'success indexes',
    success({ succeededIndexes: '1-9' }),
    ['spec.successPolicy.rules[0].succeededIndexes: Invalid value: "1-9": error parsing succeededIndexes: too large index: "9"'],
  ],
  [
    'success count',
    success({ succeededIndexes: '1-2', succeededCount: 3 }),
    [
      'spec.successPolicy.rules[0].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)',
    ],
  ],
]
for (const [name, spec, want] of cases)
  test(`API-17 job validation: ${name}`, () => assert.deepEqual(texts(job.validate?.({ obj: subject(spec), path, context })), want))

test('API-17 job validation: restart policies, labels set by hand, host names that do not fit', () => {
  const never = subject()
  Object.assign(never.spec.template.spec ?? {}, { restartPolicy: 'Always' })
  assert.deepEqual(texts(job.validate?.({ obj: never, path, context })), [
    'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
  ])
  const labelled = subject()
  Object.assign(labelled.spec.template.metadata?.labels ?? {}, { 'job-name': 'x' })
  const [first] = texts(job.validate?.({ obj: labelled, path, context }))
  assert.match(first ?? '', /^spec\.template\.metadata\.labels\[job-name\]: Invalid value: \{.*\}: must be 'j'$/)
  const long = subject({ ...indexed, completions: 11 })
  long.metadata.name = 'a'.repeat(61)
  const named = texts(job.validate?.({ obj: long, path, context })).filter((text) => text.startsWith('metadata.name'))
  assert.match(named[0] ?? '', /will not able to create pod with invalid DNS label: a{61}-10$/)
})

test('API-17 job update: completions in tandem, a paused job may be steered, its image may not change', () => {
  const update = (before: object, after: object, status: JobStatus = {}) => {
    const old = subject(before, status)
    const obj = deepCopy(old)
    Object.assign(obj.spec, after)
    return texts(job.validateUpdate?.({ obj, old, path, context }))
  }
  const both = { ...indexed, parallelism: 5 }
  assert.deepEqual(update(both, { completions: 3, parallelism: 3 }), [])
  assert.deepEqual(update(both, { completions: 3 }), ['spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism'])
  assert.deepEqual(update({}, { completions: 3, parallelism: 3 }), ['spec.completions: Invalid value: 3: field is immutable'])
  assert.deepEqual(update({}, { managedBy: 'a.io/b' }), ['spec.managedBy: Invalid value: "a.io/b": field is immutable'])
  const { template } = subject().spec
  const steered = deepCopy<JobSpec['template']>(template)
  Object.assign(steered.spec ?? {}, { nodeSelector: { a: 'b' } })
  Object.assign(steered.spec?.containers[0] ?? {}, { resources: { requests: { cpu: '1' } } })
  assert.deepEqual(update({ suspend: true }, { template: steered }), [])
  assert.equal(update({}, { template: steered }).length, 1)
  const swapped = deepCopy<JobSpec['template']>(template)
  Object.assign(swapped.spec?.containers[0] ?? {}, { image: 'b' })
  assert.equal(update({ suspend: true }, { template: swapped }).length, 1)
})

const yes = (...types: string[]) => types.map((type) => ({ type, status: 'True' }))
const time = '2026-01-01T00:00:00Z'
const statuses: [name: string, spec: object, before: JobStatus, after: JobStatus, want: string[]][] = [
  ['good', {}, {}, { active: 1, ready: 1, startTime: time }, []],
  [
    'negative',
    {},
    {},
    { active: -1 },
    ['status.active: Invalid value: -1: must be greater than or equal to 0', 'status.ready: Invalid value: 0: cannot set more ready pods than active'],
  ],
  ['more ready than active', {}, {}, { ready: 1 }, ['status.ready: Invalid value: 1: cannot set more ready pods than active']],
  [
    'a finished job has a time, a reason and no pods',
    {},
    {},
    { conditions: yes('Complete'), active: 1, terminating: 1 },
    [
      'status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition',
      'status.completionTime: Required value: completionTime is required for Complete jobs',
      'status.active: Invalid value: 1: active>0 is invalid for finished job',
      'status.startTime: Required value: startTime is required for finished job',
      'status.terminating: Invalid value: 1: terminating>0 is invalid for finished job',
    ],
  ],
  [
    'failed without a target',
    {},
    {},
    { conditions: yes('Failed'), startTime: time },
    ['status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition'],
  ],
  [
    'finished is finished',
    {},
    { conditions: yes('Failed', 'FailureTarget'), startTime: time },
    { startTime: time },
    [
      'status.conditions: Invalid value: cannot disable the terminal Failed=True condition',
      'status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition',
    ],
  ],
  ['counters do not go back', {}, { failed: 2 }, { failed: 1 }, ['status.failed: Invalid value: 1: cannot decrease the failed counter']],
  ['a start that moves', {}, { startTime: time }, {}, ['status.startTime: Required value: startTime cannot be removed for unsuspended job']],
  [
    'indexes of a job without',
    {},
    {},
    { completedIndexes: '0', failedIndexes: '0' },
    [
      'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode',
      'status.failedIndexes: Invalid value: "0": cannot set non-null failedIndexes when backoffLimitPerIndex is null',
      'status.failedIndexes: Invalid value: "0": failedIndexes and completedIndexes overlap at index: 0',
    ],
  ],
  [
    'indexes out of order',
    { ...indexed, backoffLimitPerIndex: 1 },
    {},
    { completedIndexes: '3,1', failedIndexes: '0-1-2' },
    [
      'status.completedIndexes: Invalid value: "3,1": error parsing completedIndexes: non-increasing order, previous: 3, current: 1',
      `status.failedIndexes: Invalid value: "0-1-2": error parsing failedIndexes: the fragment "0-1-2" violates the requirement that an index interval can have at most two parts separated by '-'`,
    ],
  ],
]
for (const [name, spec, before, after, want] of statuses) {
  test(`API-17 job status: ${name}`, () => {
    const input = { obj: subject(spec, after), old: subject(spec, before), path, context }
    assert.deepEqual(texts(job.status?.validateUpdate?.(input)), want)
  })
}

function cron(spec: object = {}): CronJob {
  const { template } = { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'a' }] } } }
  const made = { apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'c' }, spec: { schedule: '@daily', jobTemplate: { spec: { template } }, ...spec } }
  cronJob.defaults?.(made as unknown as CronJob, 'v1')
  return made as unknown as CronJob
}

const cronCases: [name: string, spec: object, want: string[]][] = [
  ['good', { timeZone: 'America/Argentina/Buenos_Aires' }, []],
  ['schedule', { schedule: '' }, ['spec.schedule: Required value']],
  ['five fields', { schedule: '* * * *' }, ['spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]']],
  [
    'a zone in the schedule',
    { schedule: 'TZ=UTC @daily' },
    ['spec.schedule: Invalid value: "TZ=UTC @daily": cannot use TZ or CRON_TZ in schedule, use timeZone field instead'],
  ],
  ['no zone', { timeZone: '' }, ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string']],
  ['unknown zone', { timeZone: 'Europe/Atlantis' }, ['spec.timeZone: Invalid value: "Europe/Atlantis": unknown time zone Europe/Atlantis']],
  ['misspelt zone', { timeZone: 'europe/berlin' }, ['spec.timeZone: Invalid value: "europe/berlin": unknown time zone europe/berlin']],
  [
    'local zone',
    { timeZone: 'Local' },
    ['spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones'],
  ],
  ['policy', { concurrencyPolicy: 'No' }, ['spec.concurrencyPolicy: Unsupported value: "No": supported values: "Allow", "Forbid", "Replace"']],
  ['history', { failedJobsHistoryLimit: -1 }, ['spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0']],
]
for (const [name, spec, want] of cronCases)
  test(`API-17 cron job validation: ${name}`, () => assert.deepEqual(texts(cronJob.validate?.({ obj: cron(spec), path, context })), want))

test('API-17 cron job: a long name is refused at creation only; a zone in an old schedule may stay', () => {
  const obj = cron({ schedule: 'TZ=UTC @daily' })
  obj.metadata.name = 'a'.repeat(53)
  assert.deepEqual(texts(cronJob.validateUpdate?.({ obj, old: obj, path, context })), [])
  const fresh = cron()
  fresh.metadata.name = 'a'.repeat(53)
  assert.deepEqual(texts(cronJob.validate?.({ obj: fresh, path, context })), [
    `metadata.name: Invalid value: "${'a'.repeat(53)}": must be no more than 52 characters`,
  ])
  assert.deepEqual(cronJob.warnings?.({ obj, path, context }, cron()), [
    'CRON_TZ or TZ used in spec.spec.schedule is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details',
  ])
})
