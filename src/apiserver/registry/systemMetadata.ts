/**
 * The part of metadata that the server sets (L3): clients may leave it out, or cannot change it. The result is a new object with its fields in
 * upstream's order; deleting fields one by one would make V8 use a slow object.
 * Upstream: rest.FillObjectMetaSystemFields, rest.BeforeUpdate (v1.36).
 */
import type { Frozen, ObjectMeta } from '#api/machinery/meta'

/** Upstream's order of ObjectMeta. */
const order = [
  'name',
  'generateName',
  'namespace',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
  'managedFields',
] as const satisfies readonly (keyof ObjectMeta)[]

/** For a new object: uid, name and creation time, without deletion fields. */
export function newSystemMetadata(metadata: ObjectMeta, system: { readonly uid: string; readonly creationTimestamp: string }): ObjectMeta {
  const { uid, creationTimestamp } = system
  return inOrder(metadata, { uid, creationTimestamp, deletionTimestamp: undefined, deletionGracePeriodSeconds: undefined })
}

/** For a changed object: identity and deletion stay, and the resourceVersion is the one of the replaced state. */
export function keptSystemMetadata(metadata: ObjectMeta, old: Frozen<ObjectMeta>): ObjectMeta {
  const { uid, creationTimestamp, generation, deletionTimestamp, deletionGracePeriodSeconds, resourceVersion } = old
  return inOrder(metadata, {
    uid: metadata.uid || uid,
    creationTimestamp: metadata.creationTimestamp || creationTimestamp,
    generation,
    deletionTimestamp,
    deletionGracePeriodSeconds,
    resourceVersion,
  })
}

/** `system` wins where it names a field, also with undefined. */
function inOrder(metadata: ObjectMeta, system: { readonly [field in keyof ObjectMeta]?: ObjectMeta[field] | undefined }): ObjectMeta {
  const result: Record<string, unknown> = {}
  for (const field of order) {
    const value = field in system ? system[field] : metadata[field]
    if (value !== undefined) result[field] = value
  }
  return result as ObjectMeta
}
