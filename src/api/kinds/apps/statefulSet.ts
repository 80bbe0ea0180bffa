/** StatefulSet (L1). Upstream: pkg/registry/apps/statefulset, pkg/apis/apps/{v1/defaults,validation} (v1.36). */
import type { StatefulSet } from '#api/gen/types/apps.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { selectorOf, validateLabels } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { nameIsDnsLabel } from '#api/machinery/names'
import { validateAnnotations, validateNonNegative } from '#api/machinery/objectMeta'
import { deepCopy } from '#base/frozen'
import { ageColumn, nameColumn, text, workloadColumns } from '../columns.ts'
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
  validateSelector,
} from './templates.ts'

/** Spec fields that an update may change. */
const mutable = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
] as const

const writes = templatedWrites<StatefulSet>({ replicas: 0 })

export const statefulSet = defineKind<StatefulSet>({
  group: 'apps',
  kind: 'StatefulSet',
  // Its name becomes a label of its pods, so new ones must be labels themselves.
  validateName: nameIsDnsLabel,
  columns: [
    nameColumn,
    text('Ready', (obj) => `${obj.status?.readyReplicas ?? 0}/${obj.spec?.replicas ?? 0}`),
    ageColumn,
    ...workloadColumns<StatefulSet>((obj) => obj.spec?.template?.spec?.containers),
  ],
  defaults(obj) {
    obj.spec ??= {} as StatefulSet['spec']
    obj.status ??= { replicas: 0 }
    const { spec } = obj
    spec.podManagementPolicy ||= 'OrderedReady'
    spec.updateStrategy ??= {}
    spec.updateStrategy.type ||= 'RollingUpdate'
    if (spec.updateStrategy.type === 'RollingUpdate') {
      spec.updateStrategy.rollingUpdate ??= {}
      spec.updateStrategy.rollingUpdate.partition ??= 0
    }
    spec.persistentVolumeClaimRetentionPolicy ??= {}
    spec.persistentVolumeClaimRetentionPolicy.whenDeleted ||= 'Retain'
    spec.persistentVolumeClaimRetentionPolicy.whenScaled ||= 'Retain'
    spec.replicas ??= 1
    spec.revisionHistoryLimit ??= 10
    setPodTemplateDefaults(spec.template)
    for (const claim of spec.volumeClaimTemplates ?? []) {
      claim.apiVersion ??= 'v1'
      claim.kind ??= 'PersistentVolumeClaim'
      claim.spec ??= {}
      claim.spec.volumeMode ??= 'Filesystem'
      claim.status ??= {}
      claim.status.phase ??= 'Pending'
    }
  },
  prepareForCreate(input) {
    writes.prepareForCreate(input)
    delete input.obj.spec.updateStrategy?.rollingUpdate?.maxUnavailable
  },
  prepareForUpdate(input) {
    const { obj, old } = input
    writes.prepareForUpdate(input)
    // The gate MaxUnavailableStatefulSet is off.
    if (old.spec.updateStrategy?.rollingUpdate?.maxUnavailable === undefined) delete obj.spec.updateStrategy?.rollingUpdate?.maxUnavailable
  },
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => [...specFaults(obj, path.child('spec')), ...changeFaults(obj, old, path.child('spec'))],
  warnings: templatedWarnings<StatefulSet>,
  status: statusStrategy<StatefulSet>({ validateUpdate: ({ obj, old, path }) => statusFaults(obj, old, path.child('status')) }),
  scale: { replicas: 'spec.replicas', statusReplicas: 'status.replicas', selector: (obj) => selectorOf(obj.spec.selector).toString() },
})

function specFaults({ spec }: StatefulSet, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const policy = path.child('podManagementPolicy')
  if (!spec.podManagementPolicy) errors.push(fieldError.required(policy))
  else if (!['OrderedReady', 'Parallel'].includes(spec.podManagementPolicy))
    errors.push(fieldError.invalid(policy, spec.podManagementPolicy, "must be 'OrderedReady' or 'Parallel'"))
  errors.push(...strategyFaults(spec.updateStrategy, path.child('updateStrategy')))
  for (const field of ['whenDeleted', 'whenScaled'] as const) {
    const value = spec.persistentVolumeClaimRetentionPolicy?.[field]
    if (value !== 'Retain' && value !== 'Delete')
      errors.push(fieldError.notSupported(path.child('persistentVolumeClaimRetentionPolicy', field), value ?? '', ['Delete', 'Retain']))
  }
  errors.push(
    ...validateNonNegative(spec.replicas, path.child('replicas')),
    ...validateNonNegative(spec.minReadySeconds, path.child('minReadySeconds')),
    ...validateNonNegative(spec.ordinals?.start, path.child('ordinals', 'start')),
    ...validateSelector(spec, 'statefulset', path),
  )
  // The pod's own rules are not looked at, as upstream's: its mounts may name claims that only the pod will have as volumes.
  const template = path.child('template')
  errors.push(...validateLabels(spec.template?.metadata?.labels, template.child('labels')))
  errors.push(...validateAnnotations(spec.template?.metadata?.annotations, template.child('annotations')))
  return [...errors, ...alwaysRestartFaults(spec.template, 'StatefulSet', template)]
}

function strategyFaults(strategy: StatefulSet['spec']['updateStrategy'], path: FieldPath): FieldError[] {
  const { type, rollingUpdate } = strategy ?? {}
  if (!type) return [fieldError.required(path)]
  const at = path.child('rollingUpdate')
  if (type === 'OnDelete') return rollingUpdate ? [fieldError.invalid(at, rollingUpdate, "only allowed for updateStrategy 'RollingUpdate'")] : []
  if (type !== 'RollingUpdate') return [fieldError.invalid(path, internalStrategy(strategy), "must be 'RollingUpdate' or 'OnDelete'")]
  const errors = validateNonNegative(rollingUpdate?.partition, at.child('partition'))
  const most = rollingUpdate?.maxUnavailable
  if (most === undefined) return errors
  errors.push(...validateIntOrPercent(most, at.child('maxUnavailable'), true))
  return isZero(most) ? [...errors, fieldError.invalid(at.child('maxUnavailable'), most, 'cannot be 0')] : errors
}

function statusFaults({ status }: StatefulSet, old: Frozen<StatefulSet>, path: FieldPath): FieldError[] {
  const parts = ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'] as const
  const errors = [...(['replicas', ...parts, 'observedGeneration'] as const)].flatMap((field) => validateNonNegative(status[field], path.child(field)))
  for (const field of parts)
    if ((status[field] ?? 0) > status.replicas) errors.push(fieldError.invalid(path.child(field), status[field], 'cannot be greater than status.replicas'))
  if ((status.availableReplicas ?? 0) > (status.readyReplicas ?? 0))
    errors.push(fieldError.invalid(path.child('availableReplicas'), status.availableReplicas, 'cannot be greater than status.readyReplicas'))
  return [...errors, ...collisionFaults(status.collisionCount, old.status?.collisionCount, path.child('collisionCount'))]
}

function changeFaults(obj: StatefulSet, old: Frozen<StatefulSet>, path: FieldPath): FieldError[] {
  const rest = deepCopy<StatefulSet['spec']>(obj.spec) as unknown as Record<string, unknown>
  const oldRest = { ...old.spec } as Record<string, unknown>
  for (const field of mutable) {
    delete rest[field]
    delete oldRest[field]
  }
  if (semanticEqual(rest, oldRest)) return []
  const list = "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'"
  return [fieldError.forbidden(path, `updates to statefulset spec for fields other than ${list} are forbidden`)]
}
