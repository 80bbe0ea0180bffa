/** Job (L1). The selector and labels are made at creation. Upstream: pkg/registry/batch/job/strategy.go, pkg/apis/batch/{v1/defaults,validation} (v1.36). */
import type { Job, JobSpec } from '#api/gen/types/batch.v1'
import { isConditionTrue } from '#api/machinery/conditions'
import { humanDuration } from '#api/machinery/duration'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { selectorOf, validateLabelSelector } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { isDns1123Label } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { deepCopy } from '#base/frozen'
import { parseTime } from '#base/time'
import { templatedWrites } from '../apps/templates.ts'
import { ageColumn, nameColumn, selectorText, text, workloadColumns } from '../columns.ts'
import { setPodTemplateDefaults } from '../core/pod/defaults.ts'
import { podTemplateWarnings, workloadNameWarnings } from '../core/pod/warnings.ts'
import { defineKind } from '../defineKind.ts'
import { statusStrategy } from '../rules.ts'
import { validateJobSpec } from './validateJobSpec.ts'
import { validateJobStatusUpdate } from './validateJobStatus.ts'

const never = 2_147_483_647

const writes = templatedWrites<Job>()

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
  defaultsReadSpec: true,
  defaults(obj) {
    obj.spec ??= {} as JobSpec
    obj.status ??= {}
    setJobSpecDefaults(obj.spec)
    obj.spec.manualSelector ??= false
    const labels = obj.spec.template?.metadata?.labels
    if (labels && Object.keys(obj.metadata.labels ?? {}).length === 0) obj.metadata.labels = { ...labels }
  },
  prepareForCreate(input) {
    writes.prepareForCreate(input)
    generateSelector(input.obj)
  },
  prepareForUpdate: writes.prepareForUpdate,
  validate: ({ obj, path }) => jobFaults(obj, path),
  validateUpdate: ({ obj, old, path }) => [...jobFaults(obj, path), ...changeFaults(obj, old, path.child('spec'))],
  warnings({ obj, path }, old) {
    if (old) return semanticEqual(obj.spec, old.spec) ? [] : jobSpecWarnings(obj.spec, path.child('spec'))
    return [...workloadNameWarnings(obj.metadata.name), ...jobSpecWarnings(obj.spec, path.child('spec'))]
  },
  status: statusStrategy<Job>({ validateUpdate: ({ obj, old, path }) => validateJobStatusUpdate(obj, old, path.child('status')) }),
})

/** Warnings for the spec of a Job or of a CronJob's template. */
export function jobSpecWarnings(spec: JobSpec, path: FieldPath): string[] {
  const huge = spec.completionMode === 'Indexed' && (spec.completions ?? 0) > 100_000 && (spec.parallelism ?? 0) > 10_000
  return [
    ...(huge
      ? [
          `${path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail`,
        ]
      : []),
    ...podTemplateWarnings(spec.template, path.child('template')),
  ]
}

/** Defaults of the spec of a Job or of a CronJob's template. */
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

/** Unless the author chose a selector, the job's uid is it: no two jobs can ever share pods. A label set by hand is left for validation to refuse. */
function generateSelector(obj: Job): void {
  const { spec } = obj
  if (spec.manualSelector || !spec.template) return
  spec.template.metadata ??= {}
  spec.template.metadata.labels = { ...ownLabels(obj), ...spec.template.metadata.labels }
  spec.selector ??= {}
  spec.selector.matchLabels ??= {}
  spec.selector.matchLabels[uidLabel] ??= obj.metadata.uid ?? ''
}

const uidLabel = 'batch.kubernetes.io/controller-uid'

/** What tells the pods of one job from all others; the short names are older. */
function ownLabels({ metadata: { uid = '', name = '' } }: Frozen<Job>): Record<string, string> {
  return { 'controller-uid': uid, 'job-name': name, [uidLabel]: uid, 'batch.kubernetes.io/job-name': name }
}

function jobFaults(obj: Job, path: FieldPath): FieldError[] {
  const spec = path.child('spec')
  return [...generatedFaults(obj, path), ...validateJobSpec(obj.spec, spec), ...selectorFaults(obj, spec), ...hostnameFaults(obj, path)]
}

function generatedFaults(obj: Job, path: FieldPath): FieldError[] {
  const { manualSelector, selector, template } = obj.spec
  if (manualSelector || !selector) return []
  const labels = template?.metadata?.labels ?? {}
  const own = ownLabels(obj)
  const errors = Object.entries(own).flatMap(([key, value]) => {
    const at = path.child('spec', 'template', 'metadata', 'labels').key(key)
    if (labels[key] === undefined) return [fieldError.required(at, `must be '${value}'`)]
    return labels[key] === value ? [] : [fieldError.invalid(at, labels, `must be '${value}'`)]
  })
  if (validateLabelSelector(selector, path).length === 0 && !selectorOf(selector).matches(own))
    errors.push(fieldError.invalid(path.child('spec', 'selector'), selector, '`selector` not auto-generated'))
  return errors
}

function selectorFaults({ spec }: Job, path: FieldPath): FieldError[] {
  const at = path.child('selector')
  const errors = spec.selector ? validateLabelSelector(spec.selector, at) : [fieldError.required(at)]
  const labels = spec.template?.metadata?.labels
  if (errors.length === 0 && !selectorOf(spec.selector).matches(labels))
    errors.push(fieldError.invalid(path.child('template', 'metadata', 'labels'), labels ?? {}, '`selector` does not match template `labels`'))
  return errors
}

/** An indexed job's pods carry its name and their index as host name: the last of them must fit. */
function hostnameFaults({ metadata: { name = '' }, spec }: Job, path: FieldPath): FieldError[] {
  if (spec.completionMode !== 'Indexed' || !spec.completions) return []
  const last = `${name}-${spec.completions - 1}`
  return isDns1123Label(last).length > 0
    ? [fieldError.invalid(path.child('metadata', 'name'), name, `will not able to create pod with invalid DNS label: ${last}`)]
    : []
}

const immutable = ['selector', 'completionMode', 'podFailurePolicy', 'backoffLimitPerIndex', 'managedBy', 'successPolicy'] as const

function changeFaults(obj: Job, old: Frozen<Job>, path: FieldPath): FieldError[] {
  return [
    ...completionFaults(obj.spec, old.spec, path.child('completions')),
    ...validateImmutable(obj.spec.template, withSteering(old, obj.spec.template), path.child('template')),
    ...immutable.flatMap((field) => validateImmutable(obj.spec[field], old.spec[field], path.child(field))),
  ]
}

/** An indexed job may grow and shrink, as long as all its indexes run at once. */
function completionFaults(spec: JobSpec, old: Frozen<JobSpec>, path: FieldPath): FieldError[] {
  if (spec.completionMode !== 'Indexed') return validateImmutable(spec.completions, old.completions, path)
  if (spec.completions === undefined || spec.completions === old.completions || spec.completions === spec.parallelism) return []
  return [fieldError.invalid(path, spec.completions, 'can only be modified in tandem with spec.parallelism')]
}

/** The old template with what may still change: where pods go, and how much they use, of a job that is suspended and has no pods. */
function withSteering(old: Frozen<Job>, now: JobSpec['template']): JobSpec['template'] {
  const template = deepCopy<JobSpec['template']>(old.spec.template)
  const paused = old.spec.suspend === true && (old.status?.startTime === undefined || isConditionTrue(old.status.conditions, 'Suspended'))
  if (!paused || !template.spec || !now.spec) return template
  take(template, 'metadata', { ...template.metadata, annotations: now.metadata?.annotations, labels: now.metadata?.labels })
  for (const field of ['nodeSelector', 'tolerations', 'schedulingGates'] as const) take(template.spec, field, now.spec[field])
  const { nodeAffinity: _, ...others } = template.spec.affinity ?? {}
  const affinity = { ...others, ...(now.spec.affinity?.nodeAffinity ? { nodeAffinity: now.spec.affinity.nodeAffinity } : {}) }
  take(template.spec, 'affinity', now.spec.affinity || Object.keys(affinity).length > 0 ? affinity : undefined)
  for (const list of ['containers', 'initContainers'] as const) {
    for (const [i, container] of (template.spec[list] ?? []).entries()) take(container, 'resources', now.spec[list]?.[i]?.resources)
  }
  return template
}

function take<T extends object, K extends keyof T>(target: T, field: K, value: T[K] | undefined): void {
  if (value === undefined) delete target[field]
  else target[field] = value
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
