/** Why a Job has not succeeded (L2): suspended, failed by one of its limits, or its pods wait. */
import type { Job } from '#api/gen/types/batch.v1'
import type { Pod } from '#api/gen/types/core.v1'
import { isConditionTrue } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { bareMap } from '#base/bareMap'
import { type Cause, conditionText, type Explanation, kubectl } from './answer.ts'
import { podCauses } from './pod.ts'
import type { View } from './view.ts'
import { causesOfPods, failedCreation } from './workloadPods.ts'

const ownController = 'kubernetes.io/job-controller'

export async function explainJob(job: Frozen<Job>, view: View): Promise<Explanation> {
  const { active = 0, succeeded = 0, failed = 0, conditions } = job.status ?? {}
  const state = `${succeeded} of ${job.spec.completions ?? 1} completions, pods: ${active} active, ${failed} failed`
  const isComplete = isConditionTrue(conditions, 'Complete')
  return { state, causes: isComplete ? [] : await jobCauses(job, view), isSettled: isComplete }
}

async function jobCauses(job: Frozen<Job>, view: View): Promise<readonly Cause[]> {
  const { namespace, name = '' } = job.metadata
  const { suspend, managedBy = ownController, selector } = job.spec
  const pods = (await view.podsOf(job, selector)) ?? []
  const failure = job.status?.conditions?.find(({ type, status }) => status === 'True' && (type === 'Failed' || type === 'FailureTarget'))
  if (failure) return [await failedCause(job, conditionText(failure), failure.reason ?? '', pods, view)]
  if (managedBy !== ownController)
    return [
      {
        text: `the controller ${managedBy} runs it, and not the Job controller`,
        evidence: `spec.managedBy ${managedBy}`,
        next: kubectl(namespace, 'describe', 'job', name),
      },
    ]
  if (suspend)
    return [{ text: 'it is suspended', evidence: 'spec.suspend true', next: kubectl(namespace, 'patch', 'job', name, '-p', '{"spec":{"suspend":false}}') }]
  const creation = pods.some(({ status }) => status?.phase === 'Pending' || status?.phase === 'Running') ? undefined : await failedCreation(job, view)
  if (creation) return [creation]
  const active = pods.filter(({ status }) => status?.phase !== 'Failed')
  const waiting = await causesOfPods(active, view)
  return waiting.length > 0 ? waiting : causesOfPods(newest(pods.filter(({ status }) => status?.phase === 'Failed')), view)
}

const limits: Readonly<Record<string, string>> = bareMap({
  BackoffLimitExceeded: 'its pods failed more often than spec.backoffLimit allows',
  DeadlineExceeded: 'it took longer than spec.activeDeadlineSeconds allows',
  PodFailurePolicy: 'a rule of spec.podFailurePolicy ended it',
  FailedIndexes: 'some of its indexes failed',
  MaxFailedIndexesExceeded: 'more indexes failed than spec.maxFailedIndexes allows',
})

async function failedCause(job: Frozen<Job>, evidence: string, reason: string, pods: readonly Frozen<Pod>[], view: View): Promise<Cause> {
  const { namespace, name = '' } = job.metadata
  const [last] = newest(pods.filter(({ status }) => status?.phase === 'Failed'))
  const [cause] = last ? await podCauses(last, view) : []
  return {
    text: `it has failed: ${limits[reason] ?? reason}${last && cause ? `; pod ${last.metadata.name}: ${cause.text}` : ''}`,
    evidence,
    next: cause?.next ?? kubectl(namespace, 'describe', 'job', name),
  }
}

function newest(pods: readonly Frozen<Pod>[]): readonly Frozen<Pod>[] {
  const time = ({ metadata }: Frozen<Pod>) => metadata.creationTimestamp ?? ''
  return [...pods].sort((one, other) => time(other).localeCompare(time(one))).slice(0, 1)
}
