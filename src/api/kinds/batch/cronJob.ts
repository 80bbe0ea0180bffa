/** CronJob (L1). Upstream: pkg/registry/batch/cronjob, pkg/apis/batch/{v1/defaults,validation} (v1.36). */
import type { CronJob, JobSpec } from '#api/gen/types/batch.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { nameIsDnsSubdomain } from '#api/machinery/names'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { ageOf } from '#api/machinery/table'
import { ageColumn, integer, nameColumn, none, selectorText, text, unset, workloadColumns } from '../columns.ts'
import { podTemplateWarnings } from '../core/pod/warnings.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, oneOf, statusStrategy } from '../rules.ts'
import { setJobSpecDefaults, validateJobSpec } from './job.ts'

/** A job's name gets 11 characters more. */
const maxNameLength = 52

export const cronJob = defineKind<CronJob>({
  group: 'batch',
  kind: 'CronJob',
  validateName: (name, prefix) =>
    !prefix && name.length > maxNameLength ? [`must be no more than ${maxNameLength} characters`] : nameIsDnsSubdomain(name, prefix),
  columns: [
    nameColumn,
    text('Schedule', (obj) => obj.spec?.schedule ?? ''),
    text('Timezone', (obj) => obj.spec?.timeZone ?? none),
    { name: 'Suspend', type: 'boolean', value: (obj) => (obj.spec?.suspend === undefined ? unset : obj.spec.suspend ? 'True' : 'False') },
    integer('Active', (obj) => obj.status?.active?.length),
    text('Last Schedule', (obj, nowMs) => (obj.status?.lastScheduleTime ? ageOf(obj.status.lastScheduleTime, nowMs) : none)),
    ageColumn,
    ...workloadColumns<CronJob>(containersOf, (obj) => selectorText(obj.spec?.jobTemplate?.spec?.selector)),
  ],
  defaults(obj) {
    obj.spec ??= {} as CronJob['spec']
    obj.status ??= {}
    const { spec } = obj
    spec.concurrencyPolicy ||= 'Allow'
    spec.suspend ??= false
    spec.successfulJobsHistoryLimit ??= 3
    spec.failedJobsHistoryLimit ??= 1
    spec.jobTemplate ??= {}
    spec.jobTemplate.spec ??= {} as JobSpec
    setTemplateDefaults(spec.jobTemplate.spec)
  },
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  warnings: ({ obj, path }, old) =>
    old ? [] : podTemplateWarnings(obj.spec.jobTemplate.spec?.template, path.child('spec', 'jobTemplate', 'spec', 'template')),
  status: statusStrategy<CronJob>(),
})

/** Upstream defaults only the pod template here; the Job that is made from it gets the rest when it is created. */
function setTemplateDefaults(spec: JobSpec): void {
  const before = { ...spec }
  setJobSpecDefaults(spec)
  for (const field of ['completions', 'parallelism', 'backoffLimit', 'completionMode', 'suspend', 'podReplacementPolicy'] as const)
    if (before[field] === undefined) delete spec[field]
}

function containersOf(obj: Frozen<CronJob>) {
  return obj.spec?.jobTemplate?.spec?.template?.spec?.containers
}

function specFaults({ spec }: CronJob, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const schedule = path.child('schedule')
  if (!spec.schedule) errors.push(fieldError.required(schedule))
  else if (spec.schedule.includes('TZ'))
    errors.push(fieldError.invalid(schedule, spec.schedule, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'))
  else errors.push(...scheduleFaults(spec.schedule, schedule))
  if (spec.timeZone === '') errors.push(fieldError.invalid(path.child('timeZone'), spec.timeZone, 'timeZone must be nil or non-empty string'))
  errors.push(...oneOf(spec.concurrencyPolicy, ['Allow', 'Forbid', 'Replace'], path.child('concurrencyPolicy')))
  for (const field of ['startingDeadlineSeconds', 'successfulJobsHistoryLimit', 'failedJobsHistoryLimit'] as const)
    errors.push(...validateNonNegative(spec[field], path.child(field)))
  const job = spec.jobTemplate.spec
  const jobPath = path.child('jobTemplate', 'spec')
  if (job?.manualSelector) errors.push(fieldError.notSupported(jobPath.child('manualSelector'), true, ['nil', 'false']))
  if (job?.selector) errors.push(fieldError.invalid(jobPath.child('selector'), job.selector, '`selector` will be auto-generated'))
  if (job) errors.push(...validateJobSpec({ ...job, completionMode: job.completionMode ?? 'NonIndexed' }, jobPath))
  return errors
}

const macros = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly|every \S+)$/
const bounds = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 6],
] as const
const names = ['jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec', 'sun|mon|tue|wed|thu|fri|sat']

/** Five fields of numbers, ranges, steps and names. */
function scheduleFaults(text: string, path: FieldPath): FieldError[] {
  if (macros.test(text)) return []
  const fields = text.trim().split(/\s+/)
  if (fields.length !== 5) return [fieldError.invalid(path, text, `expected exactly 5 fields, found ${fields.length}: [${fields.join(' ')}]`)]
  for (const [i, field] of fields.entries()) {
    const word = i < 3 ? undefined : names[i - 3]
    for (const part of field.split(',')) {
      const match = /^(\*|\?|\w+(?:-\w+)?)(?:\/(\d+))?$/.exec(part)
      const values = match?.[1] === '*' || match?.[1] === '?' ? [] : (match?.[1]?.split('-') ?? [])
      const [low, high] = bounds[i] ?? [0, 0]
      const good = values.every(
        (value) => (word && new RegExp(`^(${word})$`, 'i').test(value)) || (/^\d+$/.test(value) && Number(value) >= low && Number(value) <= high),
      )
      if (!match || !good || match[2] === '0') return [fieldError.invalid(path, text, `failed to parse ${JSON.stringify(part)} in ${JSON.stringify(field)}`)]
    }
  }
  return []
}
