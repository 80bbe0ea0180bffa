/** ReplicationController (L1), ReplicaSet's elder with a plain map for a selector. Upstream: pkg/registry/core/replicationcontroller (v1.36). */
import type { ReplicationController } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { selectorOfMap, validateLabels } from '#api/machinery/labelSelector'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { ageColumn, integer, labelsText, nameColumn, workloadColumns } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'
import { setPodTemplateDefaults } from './pod/defaults.ts'
import { validatePodTemplateSpec } from './pod/validatePodSpec.ts'

export const replicationController = defineKind<ReplicationController>({
  group: '',
  kind: 'ReplicationController',
  defaultPropagation: 'orphan',
  columns: [
    nameColumn,
    integer('Desired', (obj) => obj.spec?.replicas),
    integer('Current', (obj) => obj.status?.replicas),
    integer('Ready', (obj) => obj.status?.readyReplicas),
    ageColumn,
    ...workloadColumns<ReplicationController>(
      (obj) => obj.spec?.template?.spec?.containers,
      (obj) => labelsText(obj.spec?.selector),
    ),
  ],
  selectableFields: { 'status.replicas': (obj) => String(obj.status?.replicas ?? 0) },
  defaults(obj) {
    obj.spec ??= {}
    obj.status ??= { replicas: 0 }
    obj.spec.replicas ??= 1
    const labels = obj.spec.template?.metadata?.labels
    if (labels) {
      if (Object.keys(obj.spec.selector ?? {}).length === 0) obj.spec.selector = { ...labels }
      if (Object.keys(obj.metadata.labels ?? {}).length === 0) obj.metadata.labels = { ...labels }
    }
    setPodTemplateDefaults(obj.spec.template)
  },
  prepareForCreate: ({ obj }) => dropStatus(obj, { replicas: 0 }),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  status: statusStrategy<ReplicationController>(),
  scale: { replicas: 'spec.replicas', statusReplicas: 'status.replicas', selector: (obj) => selectorOfMap(obj.spec.selector).toString() },
})

function specFaults({ spec }: ReplicationController, path: FieldPath): FieldError[] {
  const errors = [...validateNonNegative(spec.replicas, path.child('replicas')), ...validateNonNegative(spec.minReadySeconds, path.child('minReadySeconds'))]
  if (Object.keys(spec.selector ?? {}).length === 0) errors.push(fieldError.required(path.child('selector')))
  errors.push(...validateLabels(spec.selector, path.child('selector')))
  const template = path.child('template')
  if (!spec.template) return [...errors, fieldError.required(template)]
  const labels = spec.template.metadata?.labels
  if (!selectorOfMap(spec.selector).matches(labels))
    errors.push(fieldError.invalid(template.child('metadata', 'labels'), labels ?? {}, '`selector` does not match template `labels`'))
  errors.push(...validatePodTemplateSpec(spec.template, template))
  const policy = spec.template.spec?.restartPolicy
  if (policy !== 'Always') errors.push(fieldError.notSupported(template.child('spec', 'restartPolicy'), policy, ['Always']))
  return errors
}
