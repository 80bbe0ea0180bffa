/** Deployment (L1). Upstream: pkg/registry/apps/deployment, pkg/apis/apps/{v1/defaults,validation} (v1.36). */
import type { Deployment } from '#api/gen/types/apps.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { selectorOf } from '#api/machinery/labelSelector'
import { validateImmutable, validateNonNegative } from '#api/machinery/objectMeta'
import { ageColumn, integer, nameColumn, selectorText, text, workloadColumns } from '../columns.ts'
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

export const deployment = defineKind<Deployment>({
  group: 'apps',
  kind: 'Deployment',
  columns: [
    nameColumn,
    text('Ready', (obj) => `${obj.status?.readyReplicas ?? 0}/${obj.spec?.replicas ?? 0}`),
    integer('Up-to-date', (obj) => obj.status?.updatedReplicas),
    integer('Available', (obj) => obj.status?.availableReplicas),
    ageColumn,
    ...workloadColumns<Deployment>(
      (obj) => obj.spec?.template?.spec?.containers,
      (obj) => selectorText(obj.spec?.selector),
    ),
  ],
  defaults(obj) {
    obj.spec ??= {} as Deployment['spec']
    obj.status ??= {}
    const { spec } = obj
    spec.replicas ??= 1
    spec.strategy ??= {}
    spec.strategy.type ||= 'RollingUpdate'
    if (spec.strategy.type === 'RollingUpdate') {
      spec.strategy.rollingUpdate ??= {}
      spec.strategy.rollingUpdate.maxUnavailable ??= '25%'
      spec.strategy.rollingUpdate.maxSurge ??= '25%'
    }
    spec.revisionHistoryLimit ??= 10
    spec.progressDeadlineSeconds ??= 600
    setPodTemplateDefaults(spec.template)
  },
  ...templatedWrites<Deployment>(),
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => [
    ...specFaults(obj, path.child('spec')),
    ...validateImmutable(obj.spec.selector, old.spec.selector, path.child('spec', 'selector')),
  ],
  warnings: templatedWarnings<Deployment>,
  status: statusStrategy<Deployment>({
    keepMetadata: ['labels'],
    validateUpdate: ({ obj, old, path }) => [
      ...statusFaults(obj, path.child('status')),
      ...collisionFaults(obj.status.collisionCount, old.status?.collisionCount, path.child('status', 'collisionCount')),
    ],
  }),
  scale: { replicas: 'spec.replicas', statusReplicas: 'status.replicas', selector: (obj) => selectorOf(obj.spec.selector).toString() },
})

function specFaults({ spec }: Deployment, path: FieldPath): FieldError[] {
  const template = path.child('template')
  const errors = [
    ...validateNonNegative(spec.replicas, path.child('replicas')),
    ...validateSelectorAndTemplate(spec, 'deployment', path),
    ...alwaysRestartFaults(spec.template, 'ReplicaSet', template),
    ...strategyFaults(spec.strategy, path.child('strategy')),
    ...validateNonNegative(spec.minReadySeconds, path.child('minReadySeconds')),
    ...validateNonNegative(spec.revisionHistoryLimit, path.child('revisionHistoryLimit')),
  ]
  const deadline = spec.progressDeadlineSeconds
  if (deadline !== undefined) {
    errors.push(...validateNonNegative(deadline, path.child('progressDeadlineSeconds')))
    if (deadline <= (spec.minReadySeconds ?? 0))
      errors.push(fieldError.invalid(path.child('progressDeadlineSeconds'), deadline, 'must be greater than minReadySeconds'))
  }
  return errors
}

function strategyFaults(strategy: Deployment['spec']['strategy'], path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (strategy?.type !== 'Recreate' && strategy?.type !== 'RollingUpdate')
    errors.push(fieldError.notSupported(path, internalStrategy(strategy), ['Recreate', 'RollingUpdate']))
  const rolling = path.child('rollingUpdate')
  const update = strategy?.rollingUpdate
  if (strategy?.type === 'Recreate') {
    if (update) errors.push(fieldError.forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'"))
  } else if (strategy?.type === 'RollingUpdate') {
    if (!update) return [...errors, fieldError.required(rolling, 'this should be defaulted and never be nil')]
    errors.push(
      ...validateIntOrPercent(update.maxUnavailable, rolling.child('maxUnavailable'), true),
      ...validateIntOrPercent(update.maxSurge, rolling.child('maxSurge')),
    )
    if (isZero(update.maxUnavailable) && isZero(update.maxSurge))
      errors.push(fieldError.invalid(rolling.child('maxUnavailable'), update.maxUnavailable, 'may not be 0 when `maxSurge` is 0'))
  }
  return errors
}

function statusFaults({ status }: Deployment, path: FieldPath): FieldError[] {
  const fields = ['observedGeneration', 'replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas', 'unavailableReplicas'] as const
  const errors = fields.flatMap((field) => validateNonNegative(status[field], path.child(field)))
  const total = status.replicas ?? 0
  const tooMany = 'cannot be greater than status.replicas'
  if ((status.updatedReplicas ?? 0) > total) errors.push(fieldError.invalid(path.child('updatedReplicas'), status.updatedReplicas, tooMany))
  if ((status.readyReplicas ?? 0) > total) errors.push(fieldError.invalid(path.child('readyReplicas'), status.readyReplicas, tooMany))
  if ((status.availableReplicas ?? 0) > total) errors.push(fieldError.invalid(path.child('availableReplicas'), status.availableReplicas, tooMany))
  if ((status.availableReplicas ?? 0) > (status.readyReplicas ?? 0))
    errors.push(fieldError.invalid(path.child('availableReplicas'), status.availableReplicas, 'cannot be greater than readyReplicas'))
  return errors
}
