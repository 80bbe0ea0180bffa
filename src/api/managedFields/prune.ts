/**
 * Pass: an apply removes what its manager applied before, does not apply now, and no other manager owns (L1).
 * Upstream: the prune step of structured-merge-diff/v6/merge/update.go (v1.36).
 */
import type { KubeObject } from '../machinery/meta.ts'
import type { Schema } from '../schema/schema.ts'
import type { Claim } from './claims.ts'
import { difference, type FieldSet, intersection, isEmpty, union, withNamedParents } from './fieldSet.ts'
import { removeFields } from './merge.ts'
import type { TrackedWrite } from './trackedWrite.ts'
import { fieldSetOf } from './typed.ts'
import { type OtherVersion, versionAt } from './versions.ts'

/**
 * @param last the manager's claim from before
 * @param claims the others' claims, and the one that the manager makes now
 */
export function prune(merged: KubeObject, last: Claim, claims: readonly Claim[], write: TrackedWrite): KubeObject {
  const { apiVersion, schema, otherVersion } = write
  if (otherVersion && (last.apiVersion !== apiVersion || claims.some((claim) => claim.apiVersion !== apiVersion))) {
    return pruneAcrossVersions(merged, last, claims, write)
  }
  const owned = claims.reduce<FieldSet>((set, claim) => union(set, claim.fields), {})
  const doomed = difference(last.fields, withNamedParents(owned))
  return isEmpty(doomed) ? merged : (removeFields(merged, doomed, schema) as KubeObject)
}

/** Removes in the version of the manager's claim, and keeps what another claim holds in its own version. */
function pruneAcrossVersions(merged: KubeObject, last: Claim, claims: readonly Claim[], write: TrackedWrite): KubeObject {
  const then = versionAt(write, last.apiVersion)
  if (!then) return merged
  const owned = new Map<string, FieldSet>()
  for (const { apiVersion, fields } of claims) owned.set(apiVersion, union(owned.get(apiVersion) ?? {}, fields))
  const doomed = difference(last.fields, withNamedParents(owned.get(last.apiVersion) ?? {}))
  let pruned = then.back(without(then.show(merged), doomed, then.schema))
  for (const [apiVersion, fields] of owned) {
    const version = apiVersion === last.apiVersion ? undefined : versionAt(write, apiVersion)
    if (!version) continue
    const whole = version.show(merged)
    const kept = union(setIn(version, pruned), withNamedParents(fields))
    pruned = version.back(without(whole, difference(setIn(version, merged), kept), version.schema))
  }
  // Conversions may lose fields that no manager applied: remove only fields that this manager had.
  const gone = intersection(difference(setIn(then, merged), setIn(then, pruned)), withNamedParents(last.fields))
  return then.back(without(then.show(merged), gone, then.schema))
}

function setIn({ show, schema }: OtherVersion, object: KubeObject): FieldSet {
  return withNamedParents(fieldSetOf(show(object), schema))
}

function without(object: KubeObject, doomed: FieldSet, schema: Schema | undefined): KubeObject {
  const { apiVersion, kind, metadata } = object
  const left = isEmpty(doomed) ? object : ((removeFields(object, doomed, schema) ?? {}) as Partial<KubeObject>)
  return { ...left, apiVersion, kind, metadata: left.metadata ?? { name: metadata.name } } as KubeObject
}
