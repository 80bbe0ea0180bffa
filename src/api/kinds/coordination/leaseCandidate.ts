/** LeaseCandidate (L1). Upstream: pkg/registry/coordination/leasecandidate (v1.36). */
import type { LeaseCandidate } from '#api/gen/types/coordination.v1beta1'
import { fieldError } from '#api/machinery/fieldPath'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'

export const leaseCandidate = defineKind<LeaseCandidate>({
  group: 'coordination.k8s.io',
  kind: 'LeaseCandidate',
  generation: false,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: false,
  columns: [
    nameColumn,
    text('LeaseName', (obj) => obj.spec?.leaseName ?? ''),
    text('BinaryVersion', (obj) => obj.spec?.binaryVersion ?? ''),
    text('EmulationVersion', (obj) => obj.spec?.emulationVersion ?? ''),
    ageColumn,
  ],
  selectableFields: { 'spec.leaseName': (obj) => obj.spec?.leaseName ?? '' },
  validate: ({ obj, path }) =>
    (['leaseName', 'binaryVersion', 'strategy'] as const).flatMap((field) => (obj.spec?.[field] ? [] : [fieldError.required(path.child('spec', field))])),
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec.leaseName, old.spec.leaseName, path.child('spec', 'leaseName')),
})
