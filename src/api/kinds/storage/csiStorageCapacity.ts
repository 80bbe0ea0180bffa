/** CSIStorageCapacity (L1). Upstream: pkg/registry/storage/csistoragecapacity, pkg/apis/storage/validation (v1.36). */
import type { CSIStorageCapacity } from '#api/gen/types/storage.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateLabelSelector } from '#api/machinery/labelSelector'
import { nameIsDnsSubdomain } from '#api/machinery/names'
import { negativeMessage, validateImmutable } from '#api/machinery/objectMeta'
import { canonicalQuantity, quantitySign } from '#api/machinery/quantity'
import { nameColumn, text, unset } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { nodeExpressionWarnings, nodeLabelWarnings } from '../nodeLabelWarnings.ts'
import { faults } from '../rules.ts'

export const csiStorageCapacity = defineKind<CSIStorageCapacity>({
  group: 'storage.k8s.io',
  kind: 'CSIStorageCapacity',
  generation: false,
  allowUnconditionalUpdate: false,
  columns: [nameColumn, text('StorageClassName', (obj) => obj.storageClassName ?? ''), text('Capacity', (obj) => obj.capacity ?? unset)],
  validate: ({ obj, path }) => capacityFaults(obj, path),
  warnings: ({ obj, path }) => topologyWarnings(obj, path.child('nodeTopology')),
  validateUpdate: ({ obj, old, path }) => [
    ...capacityFaults(obj, path),
    ...validateImmutable(obj.nodeTopology, old.nodeTopology, path.child('nodeTopology')),
    ...validateImmutable(obj.storageClassName, old.storageClassName, path.child('storageClassName')),
  ],
})

function topologyWarnings({ nodeTopology }: CSIStorageCapacity, path: FieldPath): string[] {
  const labels = Object.keys(nodeTopology?.matchLabels ?? {})
  return [
    ...nodeExpressionWarnings(nodeTopology?.matchExpressions, path),
    ...labels.flatMap((key) => nodeLabelWarnings(key, path.child('matchLabels').child(key), false)),
  ]
}

function capacityFaults(obj: CSIStorageCapacity, path: FieldPath): FieldError[] {
  const name = obj.storageClassName
  const errors = [
    ...validateLabelSelector(obj.nodeTopology, path.child('nodeTopology')),
    ...faults(path.child('storageClassName'), name, nameIsDnsSubdomain(name, false)),
  ]
  if (obj.capacity !== undefined && quantitySign(obj.capacity) < 0)
    errors.push(fieldError.invalid(path.child('capacity'), canonicalQuantity(obj.capacity), negativeMessage))
  return errors
}
