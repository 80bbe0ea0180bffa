/**
 * Namespace (L1): born Active with the finalizer `kubernetes`, which only the finalize endpoint removes.
 * Upstream: pkg/registry/core/namespace, pkg/apis/core/validation (v1.36).
 */
import type { Namespace } from '#api/gen/types/core.v1'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import { nameIsDnsLabel } from '#api/machinery/names'
import { validateFinalizerName } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { defineKind, type UpdateInput } from '../defineKind.ts'
import { keepStatus, statusStrategy } from '../rules.ts'

const nameLabel = 'kubernetes.io/metadata.name'

export const namespace = defineKind<Namespace>({
  group: '',
  kind: 'Namespace',
  generation: false,
  validateName: nameIsDnsLabel,
  columns: [nameColumn, text('Status', (obj) => obj.status?.phase ?? ''), ageColumn],
  selectableFields: { 'status.phase': (obj) => obj.status?.phase ?? '' },
  defaults(obj) {
    obj.spec ??= {}
    obj.status ??= {}
    obj.status.phase ??= 'Active'
    // Selectors of NetworkPolicies and webhooks rely on this label; it cannot be removed.
    if (obj.metadata.name) obj.metadata.labels = { ...obj.metadata.labels, [nameLabel]: obj.metadata.name }
  },
  prepareForCreate({ obj }) {
    obj.status = { phase: 'Active' }
    if (!obj.spec.finalizers?.includes('kubernetes')) obj.spec.finalizers = [...(obj.spec.finalizers ?? []), 'kubernetes']
  },
  prepareForUpdate(input) {
    keepStatus(input)
    keepFinalizers(input)
  },
  canonicalize(obj) {
    if (obj.metadata.name) obj.metadata.labels = { ...obj.metadata.labels, [nameLabel]: obj.metadata.name }
  },
  validate: ({ obj, path }) => finalizerFaults(obj, () => path.child('spec', 'finalizers')),
  status: statusStrategy<Namespace>({
    validateUpdate({ obj }) {
      const terminating = obj.metadata.deletionTimestamp !== undefined
      const path = FieldPath.of('status', 'Phase')
      if (terminating && obj.status.phase !== 'Terminating')
        return [fieldError.invalid(path, obj.status.phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")]
      if (!terminating && obj.status.phase !== 'Active')
        return [fieldError.invalid(path, obj.status.phase, "may only be 'Active' if `deletionTimestamp` is empty")]
      return []
    },
  }),
  termination: {
    isHeld: (obj) => (obj.spec?.finalizers?.length ?? 0) > 0,
    show(obj) {
      if (obj.status?.phase === 'Terminating') return false
      obj.status = { ...obj.status, phase: 'Terminating' }
      return true
    },
  },
  subresources: {
    finalize: {
      resetFields: ['status'],
      prepareForUpdate: keepStatus,
      validateUpdate: ({ obj, path }) => finalizerFaults(obj, (i) => path.child('spec', 'finalizers').index(i)),
    },
  },
})

/** Only the finalize endpoint changes spec.finalizers. */
function keepFinalizers({ obj, old }: UpdateInput<Namespace>): void {
  const { finalizers: _, ...spec } = obj.spec ?? {}
  obj.spec = old.spec?.finalizers?.length ? { ...spec, finalizers: [...old.spec.finalizers] } : spec
}

const standardFinalizers = ['kubernetes', 'orphan', 'foregroundDeletion']

/** @param at where the fault of a finalizer is reported: at its own place by the finalize endpoint only, as upstream */
function finalizerFaults(obj: Namespace, at: (index: number) => FieldPath): FieldError[] {
  return (obj.spec?.finalizers ?? []).flatMap((finalizer, i) => {
    const errors = validateFinalizerName(finalizer, at(i))
    if (finalizer.includes('/') || standardFinalizers.includes(finalizer)) return errors
    return [...errors, fieldError.invalid(at(i), finalizer, 'name is neither a standard finalizer name nor is it fully qualified')]
  })
}
