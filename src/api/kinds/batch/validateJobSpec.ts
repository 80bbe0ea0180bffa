/**
 * Validation of a job's spec, in a Job and in a CronJob's template (L1). Upstream: pkg/apis/batch/validation validateJobSpec (v1.36).
 */
import type { JobSpec, PodFailurePolicyRule, SuccessPolicyRule } from '#api/gen/types/batch.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isDns1123Subdomain, isQualifiedName } from '#api/machinery/names'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { validatePodTemplateSpec } from '../core/pod/validatePodSpec.ts'
import { faults, oneOf } from '../rules.ts'
import { countIndexes } from './indexes.ts'

const maxIndexedParallelism = 100_000
const maxFailedIndexes = 100_000
/** Jobs with a limit per index and more completions than this keep less, so that their status stays small. */
const manyCompletions = 100_000
const limitForManyCompletions = 10_000
const maxRules = 20
const maxExitCodes = 255
const maxManagedByLength = 63
const maxSucceededIndexesLength = 64 * 1024

const numbers = ['parallelism', 'completions', 'activeDeadlineSeconds', 'backoffLimit', 'ttlSecondsAfterFinished', 'backoffLimitPerIndex'] as const

export function validateJobSpec(spec: JobSpec, path: FieldPath): FieldError[] {
  const errors = numbers.flatMap((field) => validateNonNegative(spec[field], path.child(field)))
  if (spec.maxFailedIndexes !== undefined) {
    errors.push(...validateNonNegative(spec.maxFailedIndexes, path.child('maxFailedIndexes')))
    if (spec.backoffLimitPerIndex === undefined) errors.push(fieldError.required(path.child('backoffLimitPerIndex'), 'when maxFailedIndexes is specified'))
  }
  if (spec.managedBy !== undefined) errors.push(...managedByFaults(spec.managedBy, path.child('managedBy')))
  errors.push(...modeFaults(spec, path))
  if (spec.podFailurePolicy) errors.push(...failurePolicyFaults(spec, path.child('podFailurePolicy', 'rules')))
  if (spec.successPolicy) errors.push(...successPolicyFaults(spec, path.child('successPolicy')))
  if (spec.podReplacementPolicy !== undefined) {
    const supported = spec.podFailurePolicy ? ['Failed'] : ['Failed', 'TerminatingOrFailed']
    if (!supported.includes(spec.podReplacementPolicy))
      errors.push(fieldError.notSupported(path.child('podReplacementPolicy'), spec.podReplacementPolicy, supported))
  }
  return [...errors, ...validatePodTemplateSpec(spec.template, path.child('template')), ...restartFaults(spec, path.child('template', 'spec', 'restartPolicy'))]
}

function managedByFaults(managedBy: string, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const slash = managedBy.indexOf('/')
  const [domain, rest] = [managedBy.slice(0, Math.max(0, slash)), managedBy.slice(slash + 1)]
  const form = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+"
  if (managedBy === '') errors.push(fieldError.required(path))
  else if (!domain || !rest) errors.push(fieldError.invalid(path, managedBy, 'must be a domain-prefixed path (such as "acme.io/foo")'))
  else {
    errors.push(...faults(path, domain, isDns1123Subdomain(domain)))
    if (!new RegExp(`^${form}$`).test(rest)) errors.push(fieldError.invalid(path, rest, `Invalid path (regex used for validation is '${form}')`))
  }
  if (managedBy.length > maxManagedByLength) errors.push(fieldError.tooLong(path, maxManagedByLength))
  return errors
}

function modeFaults(spec: JobSpec, path: FieldPath): FieldError[] {
  const { completionMode, completions, parallelism = 0, backoffLimitPerIndex, maxFailedIndexes: failed } = spec
  const errors: FieldError[] = []
  const at = (field: 'parallelism' | 'maxFailedIndexes') => path.child(field)
  if (completionMode === undefined || completionMode === 'NonIndexed') {
    for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes'] as const)
      if (spec[field] !== undefined) errors.push(fieldError.invalid(path.child(field), spec[field], 'requires indexed completion mode'))
    return errors
  }
  if (completionMode !== 'Indexed') return oneOf(completionMode, ['Indexed', 'NonIndexed'], path.child('completionMode'))
  if (completions === undefined) errors.push(fieldError.required(path.child('completions'), 'when completion mode is Indexed'))
  if (parallelism > maxIndexedParallelism)
    errors.push(fieldError.invalid(at('parallelism'), parallelism, `must be less than or equal to ${maxIndexedParallelism} when completion mode is Indexed`))
  if (failed !== undefined && completions !== undefined && failed > completions)
    errors.push(fieldError.invalid(at('maxFailedIndexes'), failed, 'must be less than or equal to completions'))
  if (failed !== undefined && failed > maxFailedIndexes)
    errors.push(fieldError.invalid(at('maxFailedIndexes'), failed, `must be less than or equal to ${maxFailedIndexes}`))
  if (completions === undefined || completions <= manyCompletions || backoffLimitPerIndex === undefined) return errors
  const many = `must be less than or equal to ${limitForManyCompletions} when completions are above ${manyCompletions} and used with backoff limit per index`
  if (failed === undefined) errors.push(fieldError.required(at('maxFailedIndexes'), `must be specified when completions is above ${manyCompletions}`))
  if (parallelism > limitForManyCompletions) errors.push(fieldError.invalid(at('parallelism'), parallelism, many))
  if (failed !== undefined && failed > limitForManyCompletions) errors.push(fieldError.invalid(at('maxFailedIndexes'), failed, many))
  return errors
}

const actions = ['Count', 'FailIndex', 'FailJob', 'Ignore']
const operators = ['In', 'NotIn']
const statuses = ['False', 'True', 'Unknown']

/** Required and one of a few; a missing one names them all, too. */
function choice(value: string | undefined, supported: readonly string[], path: FieldPath): FieldError[] {
  if (!value) return [fieldError.required(path, `valid values: [${supported.map((word) => JSON.stringify(word)).join(' ')}]`)]
  return supported.includes(value) ? [] : [fieldError.notSupported(path, value, supported)]
}

function failurePolicyFaults(spec: JobSpec, path: FieldPath): FieldError[] {
  const rules = spec.podFailurePolicy?.rules ?? []
  const errors = rules.length > maxRules ? [fieldError.tooMany(path, rules.length, maxRules)] : []
  const pod = spec.template?.spec
  const containers = new Set([...(pod?.containers ?? []), ...(pod?.initContainers ?? [])].map(({ name }) => name))
  return [...errors, ...rules.flatMap((rule, i) => failureRuleFaults(rule, spec, containers, path.index(i)))]
}

function failureRuleFaults(rule: PodFailurePolicyRule, spec: JobSpec, containers: ReadonlySet<string>, path: FieldPath): FieldError[] {
  const { action, onExitCodes, onPodConditions = [] } = rule
  const errors = choice(action, actions, path.child('action'))
  if (action === 'FailIndex' && spec.backoffLimitPerIndex === undefined)
    errors.push(fieldError.invalid(path.child('action'), action, 'requires the backoffLimitPerIndex to be set'))
  if (onExitCodes) errors.push(...exitCodeFaults(onExitCodes, containers, path.child('onExitCodes')))
  const conditions = path.child('onPodConditions')
  if (onPodConditions.length > maxRules) errors.push(fieldError.tooMany(conditions, onPodConditions.length, maxRules))
  for (const [i, { type, status }] of onPodConditions.entries()) {
    const at = conditions.index(i)
    errors.push(...faults(at.child('type'), type, isQualifiedName(type)), ...choice(status, statuses, at.child('status')))
  }
  if (onExitCodes && onPodConditions.length > 0) errors.push(bareInvalid(path, 'specifying both OnExitCodes and OnPodConditions is not supported'))
  if (!onExitCodes && onPodConditions.length === 0) errors.push(bareInvalid(path, 'specifying one of OnExitCodes and OnPodConditions is required'))
  return errors
}

/** Invalid without the value, which is too long to tell anything. */
export function bareInvalid(path: FieldPath, detail: string): FieldError {
  return { ...fieldError.invalid(path, '', detail), body: `Invalid value: ${detail}` }
}

function exitCodeFaults(requirement: NonNullable<PodFailurePolicyRule['onExitCodes']>, containers: ReadonlySet<string>, path: FieldPath): FieldError[] {
  const { operator, containerName, values = [] } = requirement
  const errors = choice(operator, operators, path.child('operator'))
  if (containerName !== undefined && !containers.has(containerName))
    errors.push(fieldError.invalid(path.child('containerName'), containerName, 'must be one of the container or initContainer names in the pod template'))
  const at = path.child('values')
  if (values.length === 0) errors.push(fieldError.invalid(at, values, 'at least one value is required'))
  else if (values.length > maxExitCodes) errors.push(fieldError.tooMany(at, values.length, maxExitCodes))
  const seen = new Set<number>()
  for (const [i, value] of values.entries()) {
    if (operator === 'In' && value === 0) errors.push(fieldError.invalid(at.index(i), value, 'must not be 0 for the In operator'))
    if (seen.has(value)) errors.push(fieldError.duplicate(at.index(i), value))
    seen.add(value)
  }
  if (values.some((value, i) => (values[i - 1] ?? value) > value)) errors.push(fieldError.invalid(at, values, 'must be ordered'))
  return errors
}

function successPolicyFaults(spec: JobSpec, path: FieldPath): FieldError[] {
  if (spec.completionMode !== 'Indexed') return [fieldError.invalid(path, spec.successPolicy, 'requires indexed completion mode')]
  const rules = spec.successPolicy?.rules ?? []
  const at = path.child('rules')
  const errors: FieldError[] = []
  if (rules.length === 0) errors.push(fieldError.required(at, 'at least one rules must be specified when the successPolicy is specified'))
  if (rules.length > maxRules) errors.push(fieldError.tooMany(at, rules.length, maxRules))
  return [...errors, ...rules.flatMap((rule, i) => successRuleFaults(rule, spec.completions ?? 0, at.index(i)))]
}

function successRuleFaults({ succeededCount, succeededIndexes }: SuccessPolicyRule, completions: number, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (succeededCount === undefined && succeededIndexes === undefined)
    errors.push(fieldError.required(path, 'at least one of succeededCount or succeededIndexes must be specified'))
  let total = 0
  if (succeededIndexes !== undefined) {
    const at = path.child('succeededIndexes')
    if (succeededIndexes.length > maxSucceededIndexesLength) errors.push(fieldError.tooLong(at, maxSucceededIndexesLength))
    const count = countIndexes(succeededIndexes, completions)
    if (typeof count === 'number') total = count
    else errors.push(fieldError.invalid(at, succeededIndexes, `error parsing succeededIndexes: ${count.fault}`))
  }
  if (succeededCount === undefined) return errors
  const at = path.child('succeededCount')
  errors.push(...validateNonNegative(succeededCount, at))
  if (succeededCount > completions)
    errors.push(fieldError.invalid(at, succeededCount, `must be less than or equal to ${completions} (the number of specified completions)`))
  if (succeededIndexes !== undefined && succeededCount > total)
    errors.push(
      fieldError.invalid(at, succeededCount, `must be less than or equal to ${total} (the number of indexes in the specified succeededIndexes field)`),
    )
  return errors
}

function restartFaults({ template, podFailurePolicy }: JobSpec, path: FieldPath): FieldError[] {
  const policy = template?.spec?.restartPolicy
  if (!policy || policy === 'Always') return [fieldError.required(path, 'valid values: "OnFailure", "Never"')]
  if (policy !== 'OnFailure' && policy !== 'Never') return [fieldError.notSupported(path, policy, ['Never', 'OnFailure'])]
  return podFailurePolicy && policy !== 'Never' ? [fieldError.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')] : []
}
