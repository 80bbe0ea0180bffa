/** ReplicaSet (L1). Upstream: pkg/registry/apps/replicaset, pkg/apis/apps/{v1/defaults,validation} (v1.36). */
import type { ReplicaSet } from '#api/gen/types/apps.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { selectorOf } from '#api/machinery/labelSelector'
import { validateImmutable, validateNonNegative } from '#api/machinery/objectMeta'
import { ageColumn, integer, nameColumn, selectorText, workloadColumns } from '../columns.ts'
import { setPodTemplateDefaults } from '../core/pod/defaults.ts'
import { podTemplateWarnings, workloadNameWarnings } from '../core/pod/warnings.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'
import { alwaysRestartFaults, validateSelectorAndTemplate } from './templates.ts'

export const replicaSet = defineKind<ReplicaSet>({
  group: 'apps',
  kind: 'ReplicaSet',
  columns: [
    nameColumn,
    integer('Desired', (obj) => obj.spec?.replicas),
    integer('Current', (obj) => obj.status?.replicas),
    integer('Ready', (obj) => obj.status?.readyReplicas),
    ageColumn,
    ...workloadColumns<ReplicaSet>(
      (obj) => obj.spec?.template?.spec?.containers,
      (obj) => selectorText(obj.spec?.selector),
    ),
  ],
  selectableFields: { 'status.replicas': (obj) => String(obj.status?.replicas ?? 0) },
  defaults(obj) {
    obj.spec ??= {} as ReplicaSet['spec']
    obj.status ??= { replicas: 0 }
    obj.spec.replicas ??= 1
    setPodTemplateDefaults(obj.spec.template)
  },
  prepareForCreate: ({ obj }) => dropStatus(obj, { replicas: 0 }),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => [
    ...specFaults(obj, path.child('spec')),
    ...validateImmutable(obj.spec.selector, old.spec.selector, path.child('spec', 'selector')),
  ],
  warnings: ({ obj, path }, old) =>
    old ? [] : [...workloadNameWarnings(obj.metadata.name), ...podTemplateWarnings(obj.spec.template, path.child('spec', 'template'))],
  status: statusStrategy<ReplicaSet>({ validateUpdate: ({ obj, path }) => statusFaults(obj, path.child('status')) }),
  scale: { replicas: 'spec.replicas', statusReplicas: 'status.replicas', selector: (obj) => selectorOf(obj.spec.selector).toString() },
})

function specFaults({ spec }: ReplicaSet, path: FieldPath): FieldError[] {
  return [
    ...validateNonNegative(spec.replicas, path.child('replicas')),
    ...validateNonNegative(spec.minReadySeconds, path.child('minReadySeconds')),
    ...validateSelectorAndTemplate(spec, 'deployment', path),
    ...alwaysRestartFaults(spec.template, path.child('template')),
  ]
}

function statusFaults({ status }: ReplicaSet, path: FieldPath): FieldError[] {
  const fields = ['replicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas', 'observedGeneration'] as const
  const errors = fields.flatMap((field) => validateNonNegative(status[field], path.child(field)))
  for (const field of ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'] as const)
    if ((status[field] ?? 0) > status.replicas) errors.push(fieldError.invalid(path.child(field), status[field], 'cannot be greater than status.replicas'))
  if ((status.availableReplicas ?? 0) > (status.readyReplicas ?? 0))
    errors.push(fieldError.invalid(path.child('availableReplicas'), status.availableReplicas, 'cannot be greater than readyReplicas'))
  return errors
}
