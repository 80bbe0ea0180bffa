/** PodDisruptionBudget (L1). Upstream: pkg/registry/policy/poddisruptionbudget, pkg/apis/policy/validation (v1.36). */
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from '#api/gen/types/policy.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateLabelSelector } from '#api/machinery/labelSelector'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { validateIntOrPercent } from '../apps/templates.ts'
import { ageColumn, integer, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, oneOf, statusStrategy } from '../rules.ts'

const noStatus = { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 }

export const podDisruptionBudget = defineKind<PodDisruptionBudget>({
  group: 'policy',
  kind: 'PodDisruptionBudget',
  allowUnconditionalUpdate: false,
  columns: [
    nameColumn,
    text('Min Available', (obj) => String(obj.spec?.minAvailable ?? 'N/A')),
    text('Max Unavailable', (obj) => String(obj.spec?.maxUnavailable ?? 'N/A')),
    integer('Allowed Disruptions', (obj) => obj.status?.disruptionsAllowed),
    ageColumn,
  ],
  prepareForCreate: ({ obj }) => dropStatus(obj, { ...noStatus }),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  status: statusStrategy<PodDisruptionBudget>({
    validateUpdate: ({ obj: { status = {} as PodDisruptionBudgetStatus }, path }) =>
      (['disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods'] as const).flatMap((field) =>
        validateNonNegative(status[field], path.child('status', field)),
      ),
  }),
})

function specFaults({ spec }: PodDisruptionBudget, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (spec?.minAvailable !== undefined && spec.maxUnavailable !== undefined)
    errors.push(fieldError.invalid(path, spec, 'minAvailable and maxUnavailable cannot be both set'))
  for (const field of ['minAvailable', 'maxUnavailable'] as const)
    if (spec?.[field] !== undefined) errors.push(...validateIntOrPercent(spec[field], path.child(field), true))
  errors.push(...validateLabelSelector(spec?.selector, path.child('selector')))
  if (spec?.unhealthyPodEvictionPolicy !== undefined)
    errors.push(...oneOf(spec.unhealthyPodEvictionPolicy, ['AlwaysAllow', 'IfHealthyBudget'], path.child('unhealthyPodEvictionPolicy')))
  return errors
}
