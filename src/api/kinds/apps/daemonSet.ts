/** DaemonSet (L1). Upstream: pkg/registry/apps/daemonset, pkg/apis/apps/{v1/defaults,validation} (v1.36). */
import type { DaemonSet } from '#api/gen/types/apps.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateImmutable, validateNonNegative } from '#api/machinery/objectMeta'
import { ageColumn, integer, labelsText, nameColumn, selectorText, text, workloadColumns } from '../columns.ts'
import { setPodTemplateDefaults } from '../core/pod/defaults.ts'
import { defineKind } from '../defineKind.ts'
import { statusStrategy } from '../rules.ts'
import {
  alwaysRestartFaults,
  collisionFaults,
  internalStrategy,
  isZero,
  templatedWarnings,
  templatedWrites,
  validateIntOrPercent,
  validateSelectorAndTemplate,
} from './templates.ts'

const noStatus = { currentNumberScheduled: 0, desiredNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0 }

const counters = [
  'currentNumberScheduled',
  'numberMisscheduled',
  'desiredNumberScheduled',
  'numberReady',
  'observedGeneration',
  'updatedNumberScheduled',
  'numberAvailable',
  'numberUnavailable',
] as const

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
  ...templatedWrites<DaemonSet>(noStatus),
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => [
    ...specFaults(obj, path.child('spec')),
    ...validateImmutable(obj.spec.selector, old.spec.selector, path.child('spec', 'selector')),
  ],
  warnings: templatedWarnings<DaemonSet>,
  status: statusStrategy<DaemonSet>({
    validateUpdate: ({ obj: { status }, old, path }) => [
      ...counters.flatMap((field) => validateNonNegative(status[field], path.child('status', field))),
      ...collisionFaults(status.collisionCount, old.status?.collisionCount, path.child('status', 'collisionCount')),
    ],
  }),
})

function specFaults({ spec }: DaemonSet, path: FieldPath): FieldError[] {
  const template = path.child('template')
  const errors = validateSelectorAndTemplate(spec, 'daemonset', path)
  errors.push(...alwaysRestartFaults(spec.template, 'DaemonSet', template))
  errors.push(
    ...validateNonNegative(spec.minReadySeconds, path.child('minReadySeconds')),
    ...validateNonNegative(spec.revisionHistoryLimit, path.child('revisionHistoryLimit')),
  )
  const strategy = path.child('updateStrategy')
  const type = spec.updateStrategy?.type
  if (type !== 'RollingUpdate' && type !== 'OnDelete')
    errors.push(fieldError.notSupported(strategy, internalStrategy(spec.updateStrategy), ['OnDelete', 'RollingUpdate']))
  const rolling = spec.updateStrategy?.rollingUpdate
  if (type === 'RollingUpdate' && !rolling) errors.push(fieldError.required(strategy.child('rollingUpdate')))
  if (type === 'RollingUpdate' && rolling) {
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
