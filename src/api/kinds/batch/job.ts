/** Job (L1). The selector and labels are made at creation. Upstream: pkg/registry/batch/job/strategy.go, pkg/apis/batch/{v1/defaults,validation} (v1.36). */
import type { Job, JobSpec } from '#api/gen/types/batch.v1'
import { isConditionTrue } from '#api/machinery/conditions'
import { humanDuration } from '#api/machinery/duration'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { validateImmutable, validateNonNegative } from '#api/machinery/objectMeta'
import { parseTime } from '#base/time'
import { ageColumn, nameColumn, selectorText, text, workloadColumns } from '../columns.ts'
import { setPodTemplateDefaults } from '../core/pod/defaults.ts'
import { validatePodTemplateSpec } from '../core/pod/validatePodSpec.ts'
import { podTemplateWarnings, workloadNameWarnings } from '../core/pod/warnings.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, oneOf, statusStrategy } from '../rules.ts'

const never = 2_147_483_647

export const job = defineKind<Job>({
  group: 'batch',
  kind: 'Job',
  columns: [
    nameColumn,
    text('Status', statusText),
    text('Completions', completionsText),
    text('Duration', durationText),
    ageColumn,
    ...workloadColumns<Job>(
      (obj) => obj.spec?.template?.spec?.containers,
      (obj) => selectorText(obj.spec?.selector),
    ),
  ],
  selectableFields: { 'status.successful': (obj) => String(obj.status?.succeeded ?? 0) },
  defaultPropagation: 'background',
  defaults(obj) {
    obj.spec ??= {} as JobSpec
    obj.status ??= {}
    setJobSpecDefaults(obj.spec)
    const labels = obj.spec.template?.metadata?.labels
    if (labels && !obj.metadata.labels) obj.metadata.labels = { ...labels }
  },
  prepareForCreate({ obj }) {
    dropStatus(obj)
    generateSelector(obj)
  },
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => [...validateJobSpec(obj.spec, path.child('spec')), ...selectorFaults(obj, path.child('spec'))],
  validateUpdate: ({ obj, old, path }) => [...validateJobSpec(obj.spec, path.child('spec')), ...changeFaults(obj, old, path.child('spec'))],
  warnings: ({ obj, path }, old) =>
    old ? [] : [...workloadNameWarnings(obj.metadata.name), ...podTemplateWarnings(obj.spec.template, path.child('spec', 'template'))],
  status: statusStrategy<Job>(),
})

/** Of a Job and of a CronJob's template. */
export function setJobSpecDefaults(spec: JobSpec): void {
  if (spec.completions === undefined && spec.parallelism === undefined) {
    spec.completions = 1
    spec.parallelism = 1
  }
  spec.parallelism ??= 1
  spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? 6 : never
  spec.completionMode ??= 'NonIndexed'
  spec.suspend ??= false
  spec.podReplacementPolicy ??= spec.podFailurePolicy ? 'Failed' : 'TerminatingOrFailed'
  for (const rule of spec.podFailurePolicy?.rules ?? []) for (const pattern of rule.onPodConditions ?? []) pattern.status ||= 'True'
  setPodTemplateDefaults(spec.template)
}

/** The rules of a job's spec, wherever it stands. */
export function validateJobSpec(spec: JobSpec, path: FieldPath): FieldError[] {
  const fields = [
    'parallelism',
    'completions',
    'activeDeadlineSeconds',
    'backoffLimit',
    'ttlSecondsAfterFinished',
    'backoffLimitPerIndex',
    'maxFailedIndexes',
  ] as const
  const errors = fields.flatMap((field) => validateNonNegative(spec[field], path.child(field)))
  errors.push(...oneOf(spec.completionMode, ['NonIndexed', 'Indexed'], path.child('completionMode')))
  if (spec.completionMode === 'Indexed') {
    if (spec.completions === undefined) errors.push(fieldError.required(path.child('completions'), 'when completion mode is Indexed'))
    if ((spec.parallelism ?? 0) > 100_000)
      errors.push(fieldError.invalid(path.child('parallelism'), spec.parallelism, 'must be less than or equal to 100000 when completion mode is Indexed'))
  } else if (spec.backoffLimitPerIndex !== undefined) {
    errors.push(fieldError.invalid(path.child('backoffLimitPerIndex'), spec.backoffLimitPerIndex, 'requires indexed completion mode'))
  }
  const template = path.child('template')
  if (!spec.template) return [...errors, fieldError.required(template)]
  errors.push(...validatePodTemplateSpec(spec.template, template))
  const policy = spec.template.spec?.restartPolicy
  if (policy === 'Always') errors.push(fieldError.required(template.child('spec', 'restartPolicy'), 'valid values: "OnFailure", "Never"'))
  else if (policy !== 'OnFailure' && policy !== 'Never')
    errors.push(fieldError.notSupported(template.child('spec', 'restartPolicy'), policy, ['OnFailure', 'Never']))
  if (spec.podFailurePolicy && policy !== 'Never')
    errors.push(fieldError.invalid(template.child('spec', 'restartPolicy'), policy, 'only "Never" is supported when podFailurePolicy is specified'))
  return errors
}

/** Unless the author chose a selector, the job's uid is it: no two jobs can ever share pods. */
function generateSelector(obj: Job): void {
  const { spec } = obj
  if (spec.manualSelector || !spec.template) return
  const uid = obj.metadata.uid ?? ''
  const name = obj.metadata.name ?? ''
  spec.template.metadata ??= {}
  const own = { 'controller-uid': uid, 'job-name': name, 'batch.kubernetes.io/controller-uid': uid, 'batch.kubernetes.io/job-name': name }
  spec.template.metadata.labels = { ...own, ...spec.template.metadata.labels }
  spec.selector ??= {}
  spec.selector.matchLabels ??= {}
  spec.selector.matchLabels['batch.kubernetes.io/controller-uid'] ??= uid
}

function selectorFaults({ spec }: Job, path: FieldPath): FieldError[] {
  if (spec.manualSelector) return spec.selector ? [] : [fieldError.required(path.child('selector'))]
  const keys = Object.keys(spec.selector?.matchLabels ?? {})
  return keys.every((key) => key === 'batch.kubernetes.io/controller-uid')
    ? []
    : [fieldError.invalid(path.child('selector'), spec.selector, '`selector` not auto-generated')]
}

function changeFaults(obj: Job, old: Frozen<Job>, path: FieldPath): FieldError[] {
  const indexed = obj.spec.completionMode === 'Indexed' && obj.spec.completions === obj.spec.parallelism && old.spec.completions === old.spec.parallelism
  const errors = indexed ? [] : validateImmutable(obj.spec.completions, old.spec.completions, path.child('completions'))
  for (const field of ['selector', 'completionMode', 'podFailurePolicy', 'backoffLimitPerIndex', 'managedBy', 'successPolicy'] as const)
    errors.push(...validateImmutable(obj.spec[field], old.spec[field], path.child(field)))
  // A job that is suspended and never started may still be told where to run and how much to use.
  const movable = old.spec.suspend === true && old.status?.startTime === undefined
  if (!movable) errors.push(...validateImmutable(obj.spec.template, old.spec.template, path.child('template')))
  else if (
    !semanticEqual(
      obj.spec.template.spec?.containers.map((container) => container.image),
      old.spec.template.spec?.containers.map((container) => container.image),
    )
  )
    errors.push(...validateImmutable(obj.spec.template, old.spec.template, path.child('template')))
  return errors
}

function statusText(obj: Frozen<Job>): string {
  const conditions = obj.status?.conditions
  for (const type of ['Complete', 'Failed'] as const) if (isConditionTrue(conditions, type)) return type
  if (obj.metadata.deletionTimestamp) return 'Terminating'
  for (const type of ['Suspended', 'FailureTarget', 'SuccessCriteriaMet'] as const) if (isConditionTrue(conditions, type)) return type
  return 'Running'
}

function completionsText({ spec, status }: Frozen<Job>): string {
  const done = status?.succeeded ?? 0
  if (spec?.completions !== undefined) return `${done}/${spec.completions}`
  const parallelism = spec?.parallelism ?? 0
  return parallelism > 1 ? `${done}/1 of ${parallelism}` : `${done}/1`
}

function durationText({ status }: Frozen<Job>, nowMs: number): string {
  const start = parseTime(status?.startTime ?? '')
  if (start === undefined) return ''
  return humanDuration((parseTime(status?.completionTime ?? '') ?? nowMs) - start)
}
