/** ReplicationController (L1), ReplicaSet's elder with a plain map for a selector. Upstream: pkg/registry/core/replicationcontroller (v1.36). */
import type { ReplicationController } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { selectorOfMap, validateLabels } from '#api/machinery/labelSelector'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { replicaStrategy } from '../apps/replicas.ts'
import { alwaysRestartFaults, templatedWarnings } from '../apps/templates.ts'
import { labelsText } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { setPodTemplateDefaults } from './pod/defaults.ts'
import { validatePodTemplateSpec } from './pod/validatePodSpec.ts'

export const replicationController = defineKind<ReplicationController>({
  group: '',
  kind: 'ReplicationController',
  defaultPropagation: 'orphan',
  ...replicaStrategy<ReplicationController>((obj) => labelsText(obj.spec?.selector)),
  defaultsReadSpec: true,
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
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  warnings: templatedWarnings<ReplicationController>,
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
  return [...errors, ...alwaysRestartFaults(spec.template, 'ReplicationController', template)]
}
