/**
 * Validation of writes to a job's status by our controller or the one in managedBy (L1): a finished job stays finished, counters do
 * not go back. A rule whose fields did not change is not looked at, so that a spec that was changed under the status can be caught up with.
 * Upstream: pkg/apis/batch/validation ValidateJobUpdateStatus, getStatusValidationOptions in pkg/registry/batch/job/strategy.go (v1.36).
 */
import type { Job, JobStatus } from '#api/gen/types/batch.v1'
import { isConditionTrue } from '#api/machinery/conditions'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { parseTime } from '#base/time'
import { countIndexes, overlap } from './indexes.ts'
import { bareInvalid } from './validateJobSpec.ts'

type Changed = (...what: (keyof JobStatus | ConditionType)[]) => boolean
type ConditionType = 'Complete' | 'Failed' | 'FailureTarget' | 'SuccessCriteriaMet'

const has = (job: Frozen<Job>, type: ConditionType): boolean => isConditionTrue(job.status?.conditions, type)
const isFinished = (job: Frozen<Job>): boolean => has(job, 'Complete') || has(job, 'Failed')
const conditionTypes: readonly string[] = ['Complete', 'Failed', 'FailureTarget', 'SuccessCriteriaMet']

export function validateJobStatusUpdate(job: Job, old: Frozen<Job>, path: FieldPath): FieldError[] {
  const changed: Changed = (...what) =>
    what.some((one) =>
      conditionTypes.includes(one)
        ? has(job, one as ConditionType) !== has(old, one as ConditionType)
        : !semanticEqual(job.status[one as keyof JobStatus], old.status?.[one as keyof JobStatus]),
    )
  return [
    ...countFaults(job.status, path),
    ...conditionFaults(job, changed, path.child('conditions')),
    ...timeFaults(job, changed, path),
    ...finishedFaults(job, changed, path),
    ...indexFaults(job, changed, path),
    ...transitionFaults(job, old, path),
  ]
}

function countFaults(status: JobStatus, path: FieldPath): FieldError[] {
  const errors = (['active', 'succeeded', 'failed', 'ready', 'terminating'] as const).flatMap((field) => validateNonNegative(status[field], path.child(field)))
  const seen = new Set<string>()
  for (const list of ['succeeded', 'failed'] as const) {
    for (const [i, uid] of (status.uncountedTerminatedPods?.[list] ?? []).entries()) {
      const at = path.child('uncountedTerminatedPods', list).index(i)
      if (uid === '') errors.push(fieldError.invalid(at, uid, 'must not be empty'))
      else if (seen.has(uid)) errors.push(fieldError.duplicate(at, uid))
      seen.add(uid)
    }
  }
  return errors
}

function conditionFaults(job: Job, changed: Changed, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const not = (holds: boolean, detail: string) => void (holds && errors.push(bareInvalid(path, detail)))
  const [complete, failed, target, met] = [has(job, 'Complete'), has(job, 'Failed'), has(job, 'FailureTarget'), has(job, 'SuccessCriteriaMet')]
  not(changed('Complete', 'Failed') && complete && failed, 'cannot set Complete=True and Failed=true conditions')
  not(changed('Complete', 'FailureTarget') && complete && target, 'cannot set Complete=True and FailureTarget=true conditions')
  not(changed('Failed', 'FailureTarget') && failed && !target, 'cannot set Failed=True condition without the FailureTarget=true condition')
  not(changed('Complete', 'SuccessCriteriaMet') && complete && !met, 'cannot set Complete=True condition without the SuccessCriteriaMet=true condition')
  not(met && failed, 'cannot set SuccessCriteriaMet=True and Failed=true conditions')
  not(met && target, 'cannot set SuccessCriteriaMet=True and FailureTarget=true conditions')
  not(job.spec.successPolicy !== undefined && !met && complete, 'cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True')
  return errors
}

function timeFaults(job: Job, changed: Changed, path: FieldPath): FieldError[] {
  const { completionTime, startTime } = job.status
  const at = path.child('completionTime')
  const errors: FieldError[] = []
  if (changed('Complete', 'completionTime')) {
    if (completionTime && !has(job, 'Complete'))
      errors.push(fieldError.invalid(at, completionTime, 'cannot set completionTime when there is no Complete=True condition'))
    if (!completionTime && has(job, 'Complete')) errors.push(fieldError.required(at, 'completionTime is required for Complete jobs'))
  }
  const [startMs, endMs] = [parseTime(startTime ?? ''), parseTime(completionTime ?? '')]
  if (changed('startTime', 'completionTime') && startMs !== undefined && endMs !== undefined && endMs < startMs)
    errors.push(fieldError.invalid(at, completionTime, 'completionTime cannot be set before startTime'))
  return errors
}

function finishedFaults(job: Job, changed: Changed, path: FieldPath): FieldError[] {
  const { active = 0, terminating = 0, ready = 0, startTime, uncountedTerminatedPods: uncounted } = job.status
  const errors: FieldError[] = []
  if (changed('ready', 'active') && ready > active) errors.push(fieldError.invalid(path.child('ready'), ready, 'cannot set more ready pods than active'))
  if (!isFinished(job)) return errors
  if (changed('Complete', 'Failed', 'active') && active > 0)
    errors.push(fieldError.invalid(path.child('active'), active, 'active>0 is invalid for finished job'))
  if (changed('Complete', 'Failed', 'startTime') && !startTime)
    errors.push(fieldError.required(path.child('startTime'), 'startTime is required for finished job'))
  if (changed('Complete', 'Failed', 'uncountedTerminatedPods') && (uncounted?.succeeded?.length || uncounted?.failed?.length))
    errors.push(fieldError.invalid(path.child('uncountedTerminatedPods'), uncounted, 'uncountedTerminatedPods needs to be empty for finished job'))
  if (changed('Complete', 'Failed', 'terminating') && terminating > 0)
    errors.push(fieldError.invalid(path.child('terminating'), terminating, 'terminating>0 is invalid for finished job'))
  return errors
}

function indexFaults({ spec, status }: Job, changed: Changed, path: FieldPath): FieldError[] {
  const { completedIndexes = '', failedIndexes } = status
  const { completions, backoffLimitPerIndex } = spec
  const errors: FieldError[] = []
  const [completedPath, failedPath] = [path.child('completedIndexes'), path.child('failedIndexes')]
  const check = (text: string, at: FieldPath, name: string) => {
    const count = countIndexes(text, completions ?? 0)
    if (typeof count !== 'number') errors.push(fieldError.invalid(at, text, `error parsing ${name}: ${count.fault}`))
  }
  if (changed('completedIndexes')) {
    if (completions !== undefined) check(completedIndexes, completedPath, 'completedIndexes')
    if (completedIndexes !== '' && spec.completionMode !== 'Indexed')
      errors.push(fieldError.invalid(completedPath, completedIndexes, 'cannot set non-empty completedIndexes when non-indexed completion mode'))
  }
  if (failedIndexes === undefined) return errors
  if (changed('failedIndexes')) {
    if (completions !== undefined && backoffLimitPerIndex !== undefined) check(failedIndexes, failedPath, 'failedIndexes')
    if (backoffLimitPerIndex === undefined)
      errors.push(fieldError.invalid(failedPath, failedIndexes, 'cannot set non-null failedIndexes when backoffLimitPerIndex is null'))
  }
  const both = changed('failedIndexes', 'completedIndexes') ? overlap(completedIndexes, failedIndexes, completions ?? 0) : undefined
  if (both !== undefined) errors.push(fieldError.invalid(failedPath, failedIndexes, `failedIndexes and completedIndexes overlap at index: ${both}`))
  return errors
}

function transitionFaults(job: Job, old: Frozen<Job>, path: FieldPath): FieldError[] {
  const conditions = path.child('conditions')
  const errors: FieldError[] = []
  for (const type of ['Failed', 'Complete', 'FailureTarget'] as const)
    if (has(old, type) && !has(job, type)) errors.push(bareInvalid(conditions, `cannot disable the terminal ${type}=True condition`))
  const { failed = 0, succeeded = 0, completionTime, startTime } = job.status
  if (failed < (old.status?.failed ?? 0)) errors.push(fieldError.invalid(path.child('failed'), failed, 'cannot decrease the failed counter'))
  // An indexed job that is made smaller forgets the indexes that are gone.
  const elastic = job.spec.completionMode === 'Indexed' && job.spec.completions === job.spec.parallelism
  if (!elastic && succeeded < (old.status?.succeeded ?? 0))
    errors.push(fieldError.invalid(path.child('succeeded'), succeeded, 'cannot decrease the succeeded counter'))
  if (completionTime && old.status?.completionTime && completionTime !== old.status.completionTime)
    errors.push(fieldError.invalid(path.child('completionTime'), completionTime, 'completionTime cannot be mutated'))
  if (old.status?.startTime && startTime !== old.status.startTime && !job.spec.suspend)
    errors.push(fieldError.required(path.child('startTime'), 'startTime cannot be removed for unsuspended job'))
  const [metBefore, met] = [has(old, 'SuccessCriteriaMet'), has(job, 'SuccessCriteriaMet')]
  if (metBefore && !met) errors.push(bareInvalid(conditions, 'cannot disable the SuccessCriteriaMet=True condition'))
  if (has(old, 'Complete') && !metBefore && met)
    errors.push(bareInvalid(conditions, 'cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions'))
  return errors
}
