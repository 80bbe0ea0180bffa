/** What every condition of a status must keep (L1). Upstream: apimachinery/pkg/apis/meta/v1/validation ValidateConditions (v1.36). */
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateLabelName } from '#api/machinery/labelSelector'
import { isConditionReason } from '#api/machinery/names'
import { utf8Length } from './core/data.ts'
import { faults } from './rules.ts'

/** metav1.Condition as a decoded object has it. */
export interface ConditionLike {
  readonly type?: string | undefined
  readonly status?: string | undefined
  readonly observedGeneration?: number | undefined
  readonly lastTransitionTime?: string | null | undefined
  readonly reason?: string | undefined
  readonly message?: string | undefined
}

const statuses = ['False', 'True', 'Unknown']
const maxReasonBytes = 1024
const maxMessageBytes = 32 * 1024

/** The faults of a list of conditions, one of each type. @param path of the list */
export function validateConditions(conditions: readonly ConditionLike[] | undefined, path: FieldPath): FieldError[] {
  const types = new Set<string>()
  return (conditions ?? []).flatMap((condition, i) => {
    const { type = '' } = condition
    const repeated = types.has(type) ? [fieldError.duplicate(path.index(i).child('type'), type)] : []
    types.add(type)
    return [...repeated, ...conditionFaults(condition, path.index(i))]
  })
}

function conditionFaults({ type = '', status = '', observedGeneration = 0, lastTransitionTime, reason, message = '' }: ConditionLike, path: FieldPath) {
  const errors = validateLabelName(type, path.child('type'))
  if (!statuses.includes(status)) errors.push(fieldError.notSupported(path.child('status'), status, statuses))
  if (observedGeneration < 0) errors.push(fieldError.invalid(path.child('observedGeneration'), observedGeneration, 'must be greater than or equal to zero'))
  if (!lastTransitionTime) errors.push(fieldError.required(path.child('lastTransitionTime')))
  errors.push(...reasonFaults(reason, path.child('reason')))
  if (utf8Length(message) > maxMessageBytes) errors.push(fieldError.tooLong(path.child('message'), maxMessageBytes))
  return errors
}

function reasonFaults(reason: string | undefined, path: FieldPath): FieldError[] {
  if (!reason) return [fieldError.required(path)]
  const errors = faults(path, reason, isConditionReason(reason))
  return utf8Length(reason) > maxReasonBytes ? [...errors, fieldError.tooLong(path, maxReasonBytes)] : errors
}
