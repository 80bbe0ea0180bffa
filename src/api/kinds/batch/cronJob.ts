/** CronJob (L1). Upstream: pkg/registry/batch/cronjob, pkg/apis/batch/{v1/defaults,validation} (v1.36). */
import type { CronJob, JobSpec } from '#api/gen/types/batch.v1'
import { parseCronSchedule } from '#api/helpers/cronSchedule'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { ageOf } from '#api/tables/table'
import { ageColumn, integer, nameColumn, none, selectorText, text, unset, workloadColumns } from '../columns.ts'
import { dropDisabledTemplateFields } from '../core/pod/disabledFields.ts'
import { workloadNameWarnings } from '../core/pod/warnings.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, oneOf, statusStrategy } from '../rules.ts'
import { jobSpecWarnings, setJobSpecDefaults } from './job.ts'
import { validateJobSpec } from './validateJobSpec.ts'

/** A job's name gets 11 characters more. */
const maxNameLength = 52

export const cronJob = defineKind<CronJob>({
  group: 'batch',
  kind: 'CronJob',
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
  prepareForCreate({ obj, context }) {
    dropStatus(obj)
    dropDisabledTemplateFields(obj.spec.jobTemplate?.spec?.template, context)
  },
  prepareForUpdate(input) {
    keepStatus(input)
    dropDisabledTemplateFields(input.obj.spec.jobTemplate?.spec?.template, input.context, input.old.spec.jobTemplate?.spec?.template)
  },
  validate: ({ obj, path }) => [...specFaults(obj, undefined, path.child('spec')), ...nameFaults(obj, path.child('metadata', 'name'))],
  validateUpdate: ({ obj, old, path }) => specFaults(obj, old, path.child('spec')),
  warnings({ obj, path }, old) {
    if (old) return semanticEqual(obj.spec, old.spec) ? [] : specWarnings(obj, path.child('spec'))
    return [...workloadNameWarnings(obj.metadata.name), ...specWarnings(obj, path.child('spec'))]
  },
  status: statusStrategy<CronJob>(),
})

/** Upstream defaults only the pod template here; the Job that is made from it gets the rest when it is created. */
function setTemplateDefaults(spec: JobSpec): void {
  const before = { ...spec }
  setJobSpecDefaults(spec)
  for (const field of ['completions', 'parallelism', 'backoffLimit', 'completionMode', 'suspend', 'podReplacementPolicy'] as const)
    if (before[field] === undefined) delete spec[field]
}

function nameFaults({ metadata: { name = '' } }: CronJob, path: FieldPath): FieldError[] {
  return name.length > maxNameLength ? [fieldError.invalid(path, name, `must be no more than ${maxNameLength} characters`)] : []
}

function containersOf(obj: Frozen<CronJob>) {
  return obj.spec?.jobTemplate?.spec?.template?.spec?.containers
}

function specFaults({ spec }: CronJob, old: Frozen<CronJob> | undefined, path: FieldPath): FieldError[] {
  const errors = spec.schedule ? scheduleFaults(spec, old, path.child('schedule')) : [fieldError.required(path.child('schedule'))]
  errors.push(...validateNonNegative(spec.startingDeadlineSeconds, path.child('startingDeadlineSeconds')))
  if (!old || old.spec.timeZone !== spec.timeZone) errors.push(...timeZoneFaults(spec.timeZone, path.child('timeZone')))
  errors.push(...oneOf(spec.concurrencyPolicy, ['Allow', 'Forbid', 'Replace'], path.child('concurrencyPolicy')))
  const job = spec.jobTemplate.spec as JobSpec
  const jobPath = path.child('jobTemplate', 'spec')
  errors.push(...validateJobSpec(job, jobPath))
  if (job.selector) errors.push(fieldError.invalid(jobPath.child('selector'), job.selector, '`selector` will be auto-generated'))
  if (job.manualSelector) errors.push(fieldError.notSupported(jobPath.child('manualSelector'), true, ['nil', 'false']))
  for (const field of ['successfulJobsHistoryLimit', 'failedJobsHistoryLimit'] as const) errors.push(...validateNonNegative(spec[field], path.child(field)))
  return errors
}

/** Schedules with a time zone of their own may stay, new ones may not have it. */
function scheduleFaults({ schedule, timeZone }: CronJob['spec'], old: Frozen<CronJob> | undefined, path: FieldPath): FieldError[] {
  const parsed = parseCronSchedule(schedule.replace(/^(CRON_)?TZ=\S+\s+/, ''))
  const errors = 'fault' in parsed ? [fieldError.invalid(path, schedule, parsed.fault)] : []
  if (!schedule.includes('TZ')) return errors
  if (!old?.spec.schedule.includes('TZ')) errors.push(fieldError.invalid(path, schedule, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'))
  else if (timeZone !== undefined) errors.push(fieldError.invalid(path, schedule, 'cannot use both timeZone field and TZ or CRON_TZ in schedule'))
  return errors
}

/** A name of the IANA's list, in its spelling. */
function timeZoneFaults(timeZone: string | undefined, path: FieldPath): FieldError[] {
  if (timeZone === undefined) return []
  if (timeZone === '') return [fieldError.invalid(path, timeZone, 'timeZone must be nil or non-empty string')]
  const unknown = fieldError.invalid(path, timeZone, `unknown time zone ${timeZone}`)
  if (!timeZone.split('/').every((part) => /^(?!-)[A-Za-z.\-_0-9+]{1,14}$/.test(part) && part !== '.' && part !== '..')) return [unknown]
  if (timeZone.toLowerCase() === 'local') {
    const explicit = 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones'
    return [fieldError.invalid(path, timeZone, explicit), ...(timeZone === 'Local' ? [] : [unknown])]
  }
  return timeZone.split('/').every((part) => /^[A-Z]/.test(part)) && isTimeZone(timeZone) ? [] : [unknown]
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined
  } catch {
    return false
  }
}

function specWarnings({ spec }: CronJob, path: FieldPath): string[] {
  const zoned = spec.schedule.includes('TZ')
  const advice = 'is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details'
  return [
    ...jobSpecWarnings(spec.jobTemplate.spec as JobSpec, path.child('jobTemplate', 'spec')),
    ...(zoned ? [`CRON_TZ or TZ used in ${path.child('spec', 'schedule')} ${advice}`] : []),
  ]
}
