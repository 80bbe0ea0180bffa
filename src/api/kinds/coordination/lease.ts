/** Lease (L1). Upstream: pkg/registry/coordination/lease, pkg/apis/coordination/validation (v1.36). */
import type { Lease } from '#api/gen/types/coordination.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { positive } from '../rules.ts'

export const lease = defineKind<Lease>({
  group: 'coordination.k8s.io',
  kind: 'Lease',
  generation: false,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: false,
  columns: [nameColumn, text('Holder', (obj) => obj.spec?.holderIdentity ?? ''), ageColumn],
  // Both fields belong to coordinated leader election, whose gate is off by default.
  prepareForCreate: ({ obj }) => dropCoordination(obj),
  prepareForUpdate({ obj, old }) {
    if (!old.spec?.strategy && !old.spec?.preferredHolder) dropCoordination(obj)
  },
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => specFaults(obj, path.child('spec')),
})

function dropCoordination({ spec }: Lease): void {
  delete spec?.strategy
  delete spec?.preferredHolder
}

function specFaults({ spec }: Lease, path: FieldPath): FieldError[] {
  const errors = [
    ...positive(spec?.leaseDurationSeconds, path.child('leaseDurationSeconds')),
    ...validateNonNegative(spec?.leaseTransitions, path.child('leaseTransitions')),
  ]
  if (spec?.preferredHolder && !spec.strategy)
    errors.push(fieldError.forbidden(path.child('preferredHolder'), 'may only be specified if `strategy` is defined'))
  return errors
}
