import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Job, PodFailurePolicyRule } from '#api/gen/types/batch.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { formatTime } from '#base/time'
import { VirtualClock } from '#base/virtualClock'
import { dueIndexes, failureAnnotations } from './failures.ts'
import { IndexSet } from './indexes.ts'
import { jobPod } from './manage.ts'
import * as plan from './plan.ts'
import { matchPodFailurePolicy } from './podFailurePolicy.ts'
import { jobStatus, trackPods } from './status.ts'
import { matchSuccessPolicy } from './successPolicy.ts'

const job = (spec: Partial<Job['spec']>, status: Job['status'] = {}): Job => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'j', namespace: 'n', uid: 'j' },
  spec: { template: { spec: { containers: [{ name: 'c' }], restartPolicy: 'Never' } }, ...spec },
  status,
})

interface Ended {
  readonly exitCode?: number
  readonly container?: string
  readonly condition?: string
  readonly init?: boolean
}

function endedPod({ exitCode = 1, container = 'c', condition, init }: Ended): Pod {
  const status = { name: container, image: '', imageID: '', ready: false, restartCount: 0, state: { terminated: { exitCode } } }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'n', uid: 'p', finalizers: [plan.trackingFinalizer] },
    spec: { containers: [] },
    status: {
      phase: 'Failed',
      ...(init ? { initContainerStatuses: [status] } : { containerStatuses: [status] }),
      ...(condition ? { conditions: [{ type: condition, status: 'True' }] } : {}),
    },
  }
}

const onExit = (action: string, operator: string, values: number[], containerName?: string): PodFailurePolicyRule => ({
  action,
  onExitCodes: { operator, values, ...(containerName ? { containerName } : {}) },
})
const onCondition = (action: string, type: string): PodFailurePolicyRule => ({ action, onPodConditions: [{ type, status: 'True' }] })

const failureCases: { name: string; rules: PodFailurePolicyRule[]; pod: Ended; want: object }[] = [
  { name: 'no rule matches: it counts', rules: [onExit('Ignore', 'In', [2])], pod: {}, want: { counts: true } },
  { name: 'Ignore does not count', rules: [onExit('Ignore', 'In', [1])], pod: {}, want: { action: 'Ignore', counts: false } },
  { name: 'NotIn', rules: [onExit('Count', 'NotIn', [2])], pod: {}, want: { action: 'Count', counts: true } },
  { name: 'exit code 0 never matches', rules: [onExit('Ignore', 'NotIn', [2])], pod: { exitCode: 0 }, want: { counts: true } },
  { name: 'another container', rules: [onExit('Ignore', 'In', [1], 'other')], pod: {}, want: { counts: true } },
  { name: 'init containers, too', rules: [onExit('FailIndex', 'In', [1])], pod: { init: true }, want: { action: 'FailIndex', counts: true } },
  {
    name: 'FailJob names the container',
    rules: [onExit('Ignore', 'In', [2]), onExit('FailJob', 'In', [42], 'c')],
    pod: { exitCode: 42 },
    want: { action: 'FailJob', counts: true, message: 'Container c for pod n/p failed with exit code 42 matching FailJob rule at index 1' },
  },
  {
    name: 'FailJob names the condition',
    rules: [onCondition('FailJob', 'DisruptionTarget')],
    pod: { condition: 'DisruptionTarget' },
    want: { action: 'FailJob', counts: true, message: 'Pod n/p has condition DisruptionTarget matching FailJob rule at index 0' },
  },
  {
    name: 'the first rule that matches decides',
    rules: [onCondition('Ignore', 'DisruptionTarget'), onExit('FailJob', 'In', [1])],
    pod: { condition: 'DisruptionTarget' },
    want: { action: 'Ignore', counts: false },
  },
]
for (const { name, rules, pod, want } of failureCases) {
  test(`CTL-07 podFailurePolicy: ${name}`, () => assert.deepEqual(matchPodFailurePolicy(job({ podFailurePolicy: { rules } }), endedPod(pod)), want))
}

test('CTL-07 podFailurePolicy: an ignored failure is let go uncounted, FailJob ends the job', () => {
  const ignoring = job({ backoffLimit: 0, podFailurePolicy: { rules: [onExit('Ignore', 'In', [1])] } })
  const counts = plan.countPods(ignoring, [endedPod({})])
  assert.deepEqual([counts.failed, plan.verdictOf(ignoring, counts, 0)], [0, undefined])
  const { release, uncounted } = trackPods(ignoring, counts, undefined)
  assert.deepEqual([release.length, uncounted.failed], [1, []])
  const failing = job({ podFailurePolicy: { rules: [onExit('FailJob', 'In', [1])] } })
  const verdict = plan.verdictOf(failing, plan.countPods(failing, [endedPod({})]), 0)
  assert.deepEqual([verdict?.type, verdict?.reason], ['Failed', 'PodFailurePolicy'])
})

const successCases: { name: string; rules: object[]; succeeded: number[]; want: string | undefined }[] = [
  { name: 'nothing succeeded', rules: [{ succeededCount: 1 }], succeeded: [], want: undefined },
  { name: 'a count', rules: [{ succeededCount: 2 }], succeeded: [0, 4], want: 'Matched rules at index 0' },
  { name: 'too few', rules: [{ succeededCount: 3 }], succeeded: [0, 4], want: undefined },
  { name: 'all indexes of a rule', rules: [{ succeededIndexes: '0,2-3' }], succeeded: [0, 2, 3], want: 'Matched rules at index 0' },
  { name: 'not all of them', rules: [{ succeededIndexes: '0,2-3' }], succeeded: [0, 1, 2], want: undefined },
  {
    name: 'so many of them',
    rules: [{ succeededIndexes: '9' }, { succeededIndexes: '0-4', succeededCount: 2 }],
    succeeded: [1, 3],
    want: 'Matched rules at index 1',
  },
]
for (const { name, rules, succeeded, want } of successCases) {
  test(`CTL-07 successPolicy: ${name}`, () => {
    const object = job({ completions: 10, completionMode: 'Indexed', successPolicy: { rules: rules as never } })
    assert.equal(matchSuccessPolicy(object, IndexSet.of(succeeded)), want)
    const verdict = plan.verdictOf(object, { ...plan.countPods(object, []), succeededIndexes: IndexSet.of(succeeded) }, 0)
    assert.deepEqual([verdict?.type, verdict?.reason], want ? ['Complete', 'SuccessPolicy'] : [undefined, undefined])
  })
}

/** Runs an indexed job whose index 1 always fails, on a virtual clock; the pods of the others succeed at once. */
async function runFailingIndex(spec: Partial<Job['spec']>) {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const object = job({ completions: 3, parallelism: 3, completionMode: 'Indexed', backoffLimit: 1000, ...spec })
  let pods: Pod[] = []
  const tries: number[] = []
  for (let pass = 0; pass < 100; pass++) {
    const counts = plan.countPods(object, pods)
    const verdict = plan.verdictOf(object, counts, clock.now())
    const tracking = trackPods(object, counts, verdict)
    object.status = jobStatus(object, { counts, tracking, verdict, complete: true, nowMs: clock.now() })
    if (plan.isJobFinished(object)) break
    pods = pods.map((pod) => (tracking.release.includes(pod) ? { ...pod, metadata: { ...pod.metadata, finalizers: [] } } : pod))
    if (verdict) continue
    const { due, nextMs } = dueIndexes(plan.nextIndexes(object, counts, 3 - counts.active.length), counts.held, clock.now())
    for (const index of due) {
      if (index === 1) tries.push(clock.monotonicMs())
      const made = jobPod(object, index, failureAnnotations(object, counts.held.get(index)))
      const uid = `${index}-${tries.length}`
      pods.push({
        ...made,
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...made.metadata, uid, creationTimestamp: formatTime(clock.now()) },
        status: { phase: 'Running' },
      } as Pod)
    }
    if (due.length === 0 && nextMs !== undefined) await clock.advance(nextMs)
    // Seen running once, then ended.
    if (due.length === 0)
      pods = pods.map((pod) =>
        pod.status?.phase === 'Running' ? { ...pod, status: { phase: pod.metadata.uid?.startsWith('1-') ? 'Failed' : 'Succeeded' } } : pod,
      )
  }
  return { status: object.status ?? {}, tries, failed: object.status?.conditions?.find(({ type }) => type === 'Failed') }
}

test('CTL-07 backoffLimitPerIndex: an index retries by itself, 10 s and 20 s apart, and fails alone', async () => {
  const { status, tries, failed } = await runFailingIndex({ backoffLimitPerIndex: 2 })
  assert.deepEqual(tries, [0, 10_000, 30_000])
  assert.deepEqual([status.completedIndexes, status.failedIndexes, status.succeeded, status.failed], ['0,2', '1', 2, 3])
  assert.deepEqual([failed?.reason, failed?.message], ['FailedIndexes', 'Job has failed indexes'])
})

test('CTL-07 backoffLimitPerIndex: maxFailedIndexes ends the job early', async () => {
  const { status, failed } = await runFailingIndex({ backoffLimitPerIndex: 0, maxFailedIndexes: 0 })
  assert.deepEqual([status.failedIndexes, failed?.reason], ['1', 'MaxFailedIndexesExceeded'])
})

test('CTL-07 backoffLimitPerIndex: a failure that is ignored is not held against the index', async () => {
  const ignored = endedPod({})
  ignored.metadata.annotations = { 'batch.kubernetes.io/job-index-failure-count': '1', 'batch.kubernetes.io/job-index-ignored-failure-count': '2' }
  const object = job({ completionMode: 'Indexed', completions: 1, backoffLimitPerIndex: 1, podFailurePolicy: { rules: [onExit('Ignore', 'In', [1])] } })
  assert.deepEqual(failureAnnotations(object, ignored), {
    'batch.kubernetes.io/job-index-failure-count': '1',
    'batch.kubernetes.io/job-index-ignored-failure-count': '3',
  })
})

test('CTL-07 podReplacementPolicy: a pod that is being deleted is replaced at once, or only when it has ended', () => {
  const leaving: Pod = { ...endedPod({}), status: { phase: 'Running' } }
  leaving.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
  leaving.metadata.annotations = { 'batch.kubernetes.io/job-completion-index': '0' }
  const next = (policy: string) => {
    const object = job({ completionMode: 'Indexed', completions: 1, podReplacementPolicy: policy })
    const counts = plan.countPods(object, [leaving])
    return [counts.failed, plan.nextIndexes(object, counts, 1)]
  }
  assert.deepEqual(next('TerminatingOrFailed'), [1, [0]])
  assert.deepEqual(next('Failed'), [0, []])
})
