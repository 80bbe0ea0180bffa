/** RuntimeClass (L1). Upstream: pkg/registry/node/runtimeclass, pkg/apis/node/validation (v1.36). */
import type { RuntimeClass } from '#api/gen/types/node.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateLabels } from '#api/machinery/labelSelector'
import { isDns1123Label } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { validateQuantity, validateResourceName } from '../core/pod/validateResources.ts'
import { validateTolerations } from '../core/pod/validateScheduling.ts'
import { defineKind } from '../defineKind.ts'
import { faults } from '../rules.ts'

export const runtimeClass = defineKind<RuntimeClass>({
  group: 'node.k8s.io',
  kind: 'RuntimeClass',
  generation: false,
  columns: [nameColumn, text('Handler', (obj) => obj.handler ?? ''), ageColumn],
  validate: ({ obj, path }) => classFaults(obj, path),
  validateUpdate: ({ obj, old, path }) => [...classFaults(obj, path), ...validateImmutable(obj.handler, old.handler, path.child('handler'))],
})

function classFaults(obj: RuntimeClass, path: FieldPath): FieldError[] {
  const errors = obj.handler ? faults(path.child('handler'), obj.handler, isDns1123Label(obj.handler)) : [fieldError.required(path.child('handler'))]
  for (const [name, value] of Object.entries(obj.overhead?.podFixed ?? {})) {
    const at = path.child('overhead', 'podFixed').key(name)
    errors.push(...validateResourceName(name, at), ...validateQuantity(name, value, at))
  }
  errors.push(...validateLabels(obj.scheduling?.nodeSelector, path.child('scheduling', 'nodeSelector')))
  errors.push(...validateTolerations(obj.scheduling?.tolerations, path.child('scheduling', 'tolerations')))
  return errors
}
