/** ControllerRevision (L1): a snapshot that never changes. Upstream: pkg/registry/apps/controllerrevision (v1.36). */
import type { ControllerRevision } from '#api/gen/types/apps.v1'
import { controllerOf } from '#api/helpers/owners'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { parseGroupVersion } from '#api/machinery/meta'
import { validateImmutable, validateNonNegative } from '#api/machinery/objectMeta'
import { ageColumn, integer, nameColumn, none, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'

export const controllerRevision = defineKind<ControllerRevision>({
  group: 'apps',
  kind: 'ControllerRevision',
  generation: false,
  columns: [nameColumn, text('Controller', controllerText), integer('Revision', (obj) => obj.revision), ageColumn],
  validate: ({ obj, path }) => faultsOf(obj, path),
  validateUpdate: ({ obj, old, path }) => [...faultsOf(obj, path), ...validateImmutable(obj.data, old.data, path.child('data'))],
})

function faultsOf(obj: ControllerRevision, path: FieldPath): FieldError[] {
  const missing = obj.data === undefined || obj.data === null ? [fieldError.required(path.child('data'), 'data is mandatory')] : []
  return [...missing, ...validateNonNegative(obj.revision, path.child('revision'))]
}

function controllerText(obj: Frozen<ControllerRevision>): string {
  const owner = controllerOf(obj)
  if (!owner) return none
  const { group } = parseGroupVersion(owner.apiVersion)
  return `${(group ? `${owner.kind}.${group}` : owner.kind).toLowerCase()}/${owner.name}`
}
