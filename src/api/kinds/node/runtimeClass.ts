/** RuntimeClass (L1). Upstream: pkg/registry/node/runtimeclass, pkg/apis/node/validation (v1.36). */
import type { RuntimeClass } from '#api/gen/types/node.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateLabels } from '#api/machinery/labelSelector'
import { isDns1123Label } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { validateResourceRequirements } from '../core/pod/validateResources.ts'
import { validateTolerations } from '../core/pod/validateScheduling.ts'
import { defineKind } from '../defineKind.ts'
import { nodeLabelWarnings } from '../nodeLabelWarnings.ts'
import { faults } from '../rules.ts'

export const runtimeClass = defineKind<RuntimeClass>({
  group: 'node.k8s.io',
  kind: 'RuntimeClass',
  generation: false,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: false,
  columns: [nameColumn, text('Handler', (obj) => obj.handler ?? ''), ageColumn],
  validate: ({ obj, path }) => classFaults(obj, path),
  warnings: ({ obj, path }) =>
    Object.keys(obj.scheduling?.nodeSelector ?? {}).flatMap((key) => nodeLabelWarnings(key, path.child('scheduling', 'nodeSelector'), false)),
  // Upstream looks at nothing else again.
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.handler, old.handler, path.child('handler')),
})

function classFaults(obj: RuntimeClass, path: FieldPath): FieldError[] {
  const errors = obj.handler ? faults(path.child('handler'), obj.handler, isDns1123Label(obj.handler)) : [fieldError.required(path.child('handler'))]
  // Upstream reads the overhead as limits of a container, and names it so; tools match on it.
  errors.push(...validateResourceRequirements({ limits: obj.overhead?.podFixed ?? {} }, new Set(), path.child('overhead')))
  errors.push(...validateLabels(obj.scheduling?.nodeSelector, path.child('scheduling', 'nodeSelector')))
  errors.push(...validateTolerations(obj.scheduling?.tolerations, path.child('scheduling', 'tolerations')))
  return errors
}
