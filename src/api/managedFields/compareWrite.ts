/**
 * Pass: what a write changed and removed (L1), in the request's version and in every other version in which a manager owns fields.
 * Upstream: the compare step of structured-merge-diff/v6/merge/update.go (v1.36).
 */
import type { DeepReadonly } from '#base/frozen'
import type { Steps } from '#base/steps'
import type { KubeObject } from '../machinery/meta.ts'
import { type JsonObject, setOwn } from '../machinery/objects.ts'
import { withNils } from '../schema/nils.ts'
import type { Schema } from '../schema/schema.ts'
import { type Comparison, compareObjects, comparingSteps } from './compareObjects.ts'
import { differenceBelow, type FieldSet, setOfFields, union } from './fieldSet.ts'
import type { TrackedWrite } from './trackedWrite.ts'
import { perVersion } from './versions.ts'

type Live = DeepReadonly<KubeObject> | undefined

/** What managers can lose by a write, in one version. */
export interface Loss {
  readonly changed: FieldSet
  /** What other managers lose: the changed and the removed. */
  readonly gone: FieldSet
}

export interface Change extends Comparison {
  /** The same as another version shows it; undefined for versions that are not served any more. */
  readonly lossIn: (apiVersion: string) => Loss | undefined
}

/** Compares both objects as Go shows them. Members that they share cannot have changed, and are left out; conversions need them whole. */
export function compareUpdate(write: TrackedWrite, old: Live, updated: KubeObject): Steps<Change> {
  if (!old || write.otherVersion) return compareVersions(write, old && withNils(old), withNils(updated))
  const before = old as unknown as JsonObject
  const after = updated as unknown as JsonObject
  return compareVersions(
    write,
    withNils(ownMembers(before, after)) as unknown as DeepReadonly<KubeObject>,
    withNils(ownMembers(after, before)) as unknown as KubeObject,
  )
}

export function compareApplied(write: TrackedWrite, live: Live, merged: DeepReadonly<KubeObject>): Steps<Change> {
  return compareVersions(write, live, merged)
}

/** Everything in an object, as if it had just been created. */
export function compareWhole(object: DeepReadonly<KubeObject>, { schema }: Pick<TrackedWrite, 'schema'>): FieldSet {
  return compareOf(undefined, object, schema).changed
}

function* compareVersions(write: TrackedWrite, old: Live, updated: DeepReadonly<KubeObject>): Steps<Change> {
  const comparison = yield* comparingSteps(old as unknown as JsonObject | undefined, updated as unknown as JsonObject, write.schema)
  const { changed, removed } = withoutReset(comparison, write.resetFields)
  const lossIn = perVersion(write, lossOf({ changed, removed }), ({ schema, show }) =>
    lossOf(withoutReset(compareOf(old && show(old), show(updated), schema), write.resetFields)),
  )
  return { changed, removed, lossIn }
}

function compareOf(old: Live, updated: DeepReadonly<KubeObject>, schema: Schema | undefined): Comparison {
  return compareObjects(old as unknown as JsonObject | undefined, updated as unknown as JsonObject, schema)
}

function withoutReset(comparison: Comparison, resetFields: readonly string[] | undefined): Comparison {
  if (resetFields === undefined || resetFields.length === 0) return comparison
  const reset = setOfFields(resetFields)
  return { changed: differenceBelow(comparison.changed, reset), removed: differenceBelow(comparison.removed, reset) }
}

function lossOf({ changed, removed }: Comparison): Loss {
  return { changed, gone: union(changed, removed) }
}

/** The members that are not the very same value in the other object, and what names the type. */
function ownMembers(object: JsonObject, other: JsonObject): JsonObject {
  const own: JsonObject = { apiVersion: object.apiVersion, kind: object.kind }
  for (const name of Object.keys(object)) if (object[name] !== other[name]) setOwn(own, name, object[name])
  return own
}
