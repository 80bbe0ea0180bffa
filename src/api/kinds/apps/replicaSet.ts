/** ReplicaSet (L1). Upstream: pkg/registry/apps/replicaset, pkg/apis/apps/{v1/defaults,validation} (v1.36). */
import type { ReplicaSet } from '#api/gen/types/apps.v1'
import type { FieldError, FieldPath } from '#api/machinery/fieldPath'
import { selectorOf } from '#api/machinery/labelSelector'
import { validateImmutable, validateNonNegative } from '#api/machinery/objectMeta'
import { selectorText } from '../columns.ts'
import { setPodTemplateDefaults } from '../core/pod/defaults.ts'
import { defineKind } from '../defineKind.ts'
import { replicaStrategy } from './replicas.ts'
import { alwaysRestartFaults, templatedWarnings, validateSelectorAndTemplate } from './templates.ts'

export const replicaSet = defineKind<ReplicaSet>({
  group: 'apps',
  kind: 'ReplicaSet',
  ...replicaStrategy<ReplicaSet>((obj) => selectorText(obj.spec?.selector)),
  defaults(obj) {
    obj.spec ??= {} as ReplicaSet['spec']
    obj.status ??= { replicas: 0 }
    obj.spec.replicas ??= 1
    setPodTemplateDefaults(obj.spec.template)
  },
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => [
    ...specFaults(obj, path.child('spec')),
    ...validateImmutable(obj.spec.selector, old.spec.selector, path.child('spec', 'selector')),
  ],
  warnings: templatedWarnings<ReplicaSet>,
  scale: { replicas: 'spec.replicas', statusReplicas: 'status.replicas', selector: (obj) => selectorOf(obj.spec.selector).toString() },
})

function specFaults({ spec }: ReplicaSet, path: FieldPath): FieldError[] {
  return [
    ...validateNonNegative(spec.replicas, path.child('replicas')),
    ...validateNonNegative(spec.minReadySeconds, path.child('minReadySeconds')),
    ...validateSelectorAndTemplate(spec, 'deployment', path),
    ...alwaysRestartFaults(spec.template, 'ReplicaSet', path.child('template')),
  ]
}
