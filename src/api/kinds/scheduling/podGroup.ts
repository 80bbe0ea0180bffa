/** PodGroup and Workload (L1): pods that are scheduled together. Upstream: pkg/registry/scheduling (v1.36). */
import type { PodGroup, Workload } from '#api/gen/types/scheduling.v1alpha2'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'

const group = 'scheduling.k8s.io'

export const podGroup = defineKind<PodGroup>({
  group,
  kind: 'PodGroup',
  columns: [nameColumn, ageColumn],
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validateUpdate: ({ obj, old, path }) => validateImmutable(obj.spec, old.spec, path.child('spec')),
  status: statusStrategy<PodGroup>(),
})

export const workload = defineKind<Workload>({ group, kind: 'Workload', columns: [nameColumn, ageColumn] })
