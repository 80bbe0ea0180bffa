/** PriorityClass (L1): a name for a number that never changes. Upstream: pkg/registry/scheduling, pkg/apis/scheduling/validation (v1.36). */
import type { PriorityClass } from '#api/gen/types/scheduling.v1'
import { type FieldError, fieldError } from '#api/machinery/fieldPath'
import { bareMap } from '#base/bareMap'
import { ageColumn, boolean, integer, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { oneOf } from '../rules.ts'

const highestUserPriority = 1_000_000_000
/** The only names that may begin with `system-`, and their values. */
const systemClasses: Readonly<Record<string, number>> = bareMap({ 'system-node-critical': 2_000_001_000, 'system-cluster-critical': 2_000_000_000 })

export const priorityClass = defineKind<PriorityClass>({
  group: 'scheduling.k8s.io',
  kind: 'PriorityClass',
  columns: [
    nameColumn,
    integer('Value', (obj) => obj.value),
    boolean('Global-Default', (obj) => obj.globalDefault ?? false),
    ageColumn,
    text('PreemptionPolicy', (obj) => obj.preemptionPolicy ?? ''),
  ],
  defaults(obj) {
    obj.preemptionPolicy ??= 'PreemptLowerPriority'
  },
  validate({ obj, path }) {
    const name = obj.metadata.name ?? ''
    const errors: FieldError[] = []
    if (name.startsWith('system-')) {
      const why = systemFault(name, obj)
      const reserved = `priority class names with 'system-' prefix are reserved for system use only. error: ${why}`
      if (why) errors.push(fieldError.forbidden(path.child('metadata', 'name'), reserved))
    } else if ((obj.value ?? 0) > highestUserPriority) {
      errors.push(fieldError.forbidden(path.child('value'), `maximum allowed value of a user defined priority is ${highestUserPriority}`))
    }
    return [...errors, ...(obj.preemptionPolicy ? oneOf(obj.preemptionPolicy, ['PreemptLowerPriority', 'Never'], path.child('preemptionPolicy')) : [])]
  },
  validateUpdate({ obj, old, path }) {
    const errors: FieldError[] = []
    if (obj.value !== old.value) errors.push(fieldError.forbidden(path.child('value'), 'may not be changed in an update.'))
    if (obj.preemptionPolicy !== old.preemptionPolicy)
      errors.push(fieldError.invalid(path.child('preemptionPolicy'), obj.preemptionPolicy, 'field is immutable'))
    return errors
  },
})

/** Why the class is none of the system's own; undefined when it is. */
function systemFault(name: string, { value, globalDefault }: PriorityClass): string | undefined {
  const wanted = systemClasses[name]
  if (wanted === undefined) return `${name} is not a known system priority class`
  if (value !== wanted) return `value of ${name} PriorityClass must be ${wanted}`
  return globalDefault ? `globalDefault of ${name} PriorityClass must be false` : undefined
}
