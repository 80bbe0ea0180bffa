/** DaemonSet (L1). Upstream: pkg/registry/apps/daemonset, pkg/apis/apps/{v1/defaults,validation} (v1.36). */
import type { DaemonSet } from '#api/gen/types/apps.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateImmutable, validateNonNegative } from '#api/machinery/objectMeta'
import { ageColumn, integer, labelsText, nameColumn, selectorText, text, workloadColumns } from '../columns.ts'
import { setPodTemplateDefaults } from '../core/pod/defaults.ts'
import { podTemplateWarnings, workloadNameWarnings } from '../core/pod/warnings.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, oneOf, statusStrategy } from '../rules.ts'
import { isZero, validateIntOrPercent, validateSelectorAndTemplate } from './templates.ts'

const noStatus = { currentNumberScheduled: 0, desiredNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0 }

export const daemonSet = defineKind<DaemonSet>({
  group: 'apps',
  kind: 'DaemonSet',
  columns: [
    nameColumn,
    integer('Desired', (obj) => obj.status?.desiredNumberScheduled),
    integer('Current', (obj) => obj.status?.currentNumberScheduled),
    integer('Ready', (obj) => obj.status?.numberReady),
    integer('Up-to-date', (obj) => obj.status?.updatedNumberScheduled),
    integer('Available', (obj) => obj.status?.numberAvailable),
    text('Node Selector', (obj) => labelsText(obj.spec?.template?.spec?.nodeSelector)),
    ageColumn,
    ...workloadColumns<DaemonSet>(
      (obj) => obj.spec?.template?.spec?.containers,
      (obj) => selectorText(obj.spec?.selector),
    ),
  ],
  defaults(obj) {
    obj.spec ??= {} as DaemonSet['spec']
    obj.status ??= { ...noStatus }
    const { spec } = obj
    spec.updateStrategy ??= {}
    spec.updateStrategy.type ||= 'RollingUpdate'
    if (spec.updateStrategy.type === 'RollingUpdate') {
      spec.updateStrategy.rollingUpdate ??= {}
      spec.updateStrategy.rollingUpdate.maxUnavailable ??= 1
      spec.updateStrategy.rollingUpdate.maxSurge ??= 0
    }
    spec.revisionHistoryLimit ??= 10
    setPodTemplateDefaults(spec.template)
  },
  prepareForCreate: ({ obj }) => dropStatus(obj, { ...noStatus }),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => [
    ...specFaults(obj, path.child('spec')),
    ...validateImmutable(obj.spec.selector, old.spec.selector, path.child('spec', 'selector')),
  ],
  warnings: ({ obj, path }, old) =>
    old ? [] : [...workloadNameWarnings(obj.metadata.name), ...podTemplateWarnings(obj.spec.template, path.child('spec', 'template'))],
  status: statusStrategy<DaemonSet>(),
})

function specFaults({ spec }: DaemonSet, path: FieldPath): FieldError[] {
  const template = path.child('template')
  const errors = validateSelectorAndTemplate(spec, 'daemonset', path)
  const policy = spec.template?.spec?.restartPolicy
  if (policy !== undefined && policy !== 'Always') errors.push(fieldError.notSupported(template.child('spec', 'restartPolicy'), policy, ['Always']))
  if (spec.template?.spec?.activeDeadlineSeconds !== undefined)
    errors.push(fieldError.forbidden(template.child('spec', 'activeDeadlineSeconds'), 'activeDeadlineSeconds in DaemonSet is not Supported'))
  errors.push(
    ...validateNonNegative(spec.minReadySeconds, path.child('minReadySeconds')),
    ...validateNonNegative(spec.revisionHistoryLimit, path.child('revisionHistoryLimit')),
  )
  const strategy = path.child('updateStrategy')
  errors.push(...oneOf(spec.updateStrategy?.type, ['OnDelete', 'RollingUpdate'], strategy.child('type')))
  const rolling = spec.updateStrategy?.rollingUpdate
  if (spec.updateStrategy?.type === 'RollingUpdate' && rolling) {
    const at = strategy.child('rollingUpdate')
    errors.push(
      ...validateIntOrPercent(rolling.maxUnavailable, at.child('maxUnavailable'), true),
      ...validateIntOrPercent(rolling.maxSurge, at.child('maxSurge'), true),
    )
    if (isZero(rolling.maxUnavailable) && isZero(rolling.maxSurge))
      errors.push(fieldError.required(at.child('maxUnavailable'), 'cannot be 0 when maxSurge is 0'))
    else if (!isZero(rolling.maxUnavailable) && !isZero(rolling.maxSurge))
      errors.push(fieldError.invalid(at.child('maxSurge'), rolling.maxSurge, 'may not be set when maxUnavailable is non-zero'))
  }
  return errors
}
