/**
 * What ReplicaSet and ReplicationController share (L1): they count the same things and show them alike. Their selectors differ.
 * Upstream: pkg/registry/apps/replicaset, pkg/registry/core/replicationcontroller, whose validation calls the former's (v1.36).
 */
import type { ReplicaSetStatus } from '#api/gen/types/apps.v1'
import type { PodTemplateSpec } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { ageColumn, integer, nameColumn, workloadColumns } from '../columns.ts'
import type { Column, KindStrategy } from '../defineKind.ts'
import { statusStrategy } from '../rules.ts'
import { templatedWrites } from './templates.ts'

type Replicated = KubeObject & {
  readonly spec?: { readonly replicas?: number | undefined; readonly template?: PodTemplateSpec | undefined }
  status?: ReplicaSetStatus
}

/** The members of the strategy that do not look at the selector. @param selectorText the cell of the Selector column */
export function replicaStrategy<T extends Replicated>(selectorText: (obj: Frozen<T>) => string) {
  const specOf = (obj: Frozen<T>) => (obj as Frozen<Replicated>).spec
  const statusOf = (obj: Frozen<T>) => (obj as Frozen<Replicated>).status
  return {
    columns: [
      nameColumn as Column<T>,
      integer<T>('Desired', (obj) => specOf(obj)?.replicas),
      integer<T>('Current', (obj) => statusOf(obj)?.replicas),
      integer<T>('Ready', (obj) => statusOf(obj)?.readyReplicas),
      ageColumn as Column<T>,
      ...workloadColumns<T>((obj) => specOf(obj)?.template?.spec?.containers, selectorText),
    ],
    selectableFields: { 'status.replicas': (obj) => String(statusOf(obj)?.replicas ?? 0) },
    ...templatedWrites<T>({ replicas: 0 }),
    status: statusStrategy<T>({ validateUpdate: ({ obj, path }) => replicaStatusFaults(obj.status ?? { replicas: 0 }, path.child('status')) }),
  } satisfies Partial<KindStrategy<T>>
}

function replicaStatusFaults(status: ReplicaSetStatus, path: FieldPath): FieldError[] {
  const fields = ['replicas', 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas', 'observedGeneration'] as const
  const errors = fields.flatMap((field) => validateNonNegative(status[field], path.child(field)))
  for (const field of ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'] as const) {
    if ((status[field] ?? 0) > status.replicas) errors.push(fieldError.invalid(path.child(field), status[field], 'cannot be greater than status.replicas'))
  }
  if ((status.availableReplicas ?? 0) > (status.readyReplicas ?? 0))
    errors.push(fieldError.invalid(path.child('availableReplicas'), status.availableReplicas, 'cannot be greater than readyReplicas'))
  return errors
}
