/** StatefulSet (L1). Upstream: pkg/registry/apps/statefulset, pkg/apis/apps/{v1/defaults,validation} (v1.36). */
import type { StatefulSet } from '#api/gen/types/apps.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { selectorOf } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { nameIsDnsLabel } from '#api/machinery/names'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { deepCopy } from '#base/frozen'
import { ageColumn, nameColumn, text, workloadColumns } from '../columns.ts'
import { setPodTemplateDefaults } from '../core/pod/defaults.ts'
import { podTemplateWarnings } from '../core/pod/warnings.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, oneOf, statusStrategy } from '../rules.ts'
import { validateSelectorAndTemplate } from './templates.ts'

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
  prepareForCreate: ({ obj }) => dropStatus(obj, { replicas: 0 }),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => [...specFaults(obj, path.child('spec')), ...changeFaults(obj, old, path.child('spec'))],
  warnings: ({ obj, path }, old) => (old ? [] : podTemplateWarnings(obj.spec.template, path.child('spec', 'template'))),
  status: statusStrategy<StatefulSet>(),
  scale: { replicas: 'spec.replicas', statusReplicas: 'status.replicas', selector: (obj) => selectorOf(obj.spec.selector).toString() },
})

function specFaults({ spec }: StatefulSet, path: FieldPath): FieldError[] {
  const errors = oneOf(spec.podManagementPolicy, ['OrderedReady', 'Parallel'], path.child('podManagementPolicy'))
  const strategy = path.child('updateStrategy')
  if (spec.updateStrategy?.type === 'OnDelete') {
    if (spec.updateStrategy.rollingUpdate)
      errors.push(fieldError.invalid(strategy.child('rollingUpdate'), spec.updateStrategy.rollingUpdate, "only allowed for updateStrategy 'RollingUpdate'"))
  } else if (spec.updateStrategy?.type === 'RollingUpdate') {
    errors.push(...validateNonNegative(spec.updateStrategy.rollingUpdate?.partition, strategy.child('rollingUpdate', 'partition')))
  } else if (!spec.updateStrategy?.type) errors.push(fieldError.required(strategy))
  else errors.push(fieldError.invalid(strategy, spec.updateStrategy, "must be 'RollingUpdate' or 'OnDelete'"))
  const retention = path.child('persistentVolumeClaimRetentionPolicy')
  errors.push(...oneOf(spec.persistentVolumeClaimRetentionPolicy?.whenDeleted, ['Retain', 'Delete'], retention.child('whenDeleted')))
  errors.push(...oneOf(spec.persistentVolumeClaimRetentionPolicy?.whenScaled, ['Retain', 'Delete'], retention.child('whenScaled')))
  errors.push(...validateNonNegative(spec.replicas, path.child('replicas')), ...validateNonNegative(spec.minReadySeconds, path.child('minReadySeconds')))
  errors.push(...validateNonNegative(spec.ordinals?.start, path.child('ordinals', 'start')))
  errors.push(...validateSelectorAndTemplate(spec, 'statefulset', path))
  const policy = spec.template?.spec?.restartPolicy
  if (policy !== undefined && policy !== 'Always') errors.push(fieldError.notSupported(path.child('template', 'spec', 'restartPolicy'), policy, ['Always']))
  if (spec.template?.spec?.activeDeadlineSeconds !== undefined)
    errors.push(fieldError.forbidden(path.child('template', 'spec', 'activeDeadlineSeconds'), 'activeDeadlineSeconds in StatefulSet is not Supported'))
  return errors
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
