/**
 * Pass: what a write changed and removed (L1), in the request's version and in every other version in which a manager owns fields.
 * Upstream: the compare step of structured-merge-diff/v6/merge/update.go (v1.36).
 */
import type { DeepReadonly } from '#base/frozen'
import type { Steps } from '#base/steps'
import type { KubeObject } from '../machinery/meta.ts'
import { type JsonObject, setOwn } from '../machinery/objects.ts'
import { withNils } from '../schema/nils.ts'
import { type Comparison, compareObjects, comparingObjects } from './compareObjects.ts'
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

export function compareUpdate(write: TrackedWrite, old: Live, updated: KubeObject): Change {
  const pair = shownPair(write, old, updated)
  return changeOf(write, pair, compareObjects(...pair, write.schema))
}

/** {@link compareUpdate}, with pauses. */
export function* comparingUpdate(write: TrackedWrite, old: Live, updated: KubeObject): Steps<Change> {
  const pair = shownPair(write, old, updated)
  return changeOf(write, pair, yield* comparingObjects(...pair, write.schema))
}

export function* comparingApplied(write: TrackedWrite, live: Live, merged: DeepReadonly<KubeObject>): Steps<Change> {
  const pair: Pair = [live as unknown as JsonObject | undefined, merged as unknown as JsonObject]
  return changeOf(write, pair, yield* comparingObjects(...pair, write.schema))
}

/** An object before and after a write. */
type Pair = readonly [old: JsonObject | undefined, updated: JsonObject]

/** Both objects as Go shows them. Members that they share cannot have changed, and are left out; conversions need them whole. */
function shownPair(write: TrackedWrite, old: Live, updated: KubeObject): Pair {
  const before = old as unknown as JsonObject | undefined
  const after = updated as unknown as JsonObject
  if (!before || write.otherVersion) return [before && withNils(before), withNils(after)]
  return [withNils(ownMembers(before, after)), withNils(ownMembers(after, before))]
}

/** Everything in an object, as if it had just been created. */
export function compareWhole(object: DeepReadonly<KubeObject>, { schema }: Pick<TrackedWrite, 'schema'>): FieldSet {
  return compareObjects(undefined, object as unknown as JsonObject, schema).changed
}

function changeOf(write: TrackedWrite, [old, updated]: Pair, comparison: Comparison): Change {
  const { changed, removed } = withoutReset(comparison, write.resetFields)
  const lossIn = perVersion(write, lossOf({ changed, removed }), ({ schema, show }) => {
    const shown = (object: JsonObject) => show(object as unknown as DeepReadonly<KubeObject>) as unknown as JsonObject
    return lossOf(withoutReset(compareObjects(old && shown(old), shown(updated), schema), write.resetFields))
  })
  return { changed, removed, lossIn }
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
