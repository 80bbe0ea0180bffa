/**
 * Ownership across the versions of a resource (L1): a claim names fields of the version that it was made in, so what a write changes, and
 * what an apply takes out, is looked at in that version.
 * Upstream: structured-merge-diff/v6/merge/update.go, whose Converter this is (v1.36).
 */
import type { DeepReadonly } from '#base/frozen'
import type { KubeObject } from '../machinery/meta.ts'
import type { Schema } from '../schema/schema.ts'
import type { Claim } from './entries.ts'
import { difference, type FieldSet, intersection, isEmpty, union, withNamedParents } from './fieldSet.ts'
import { removeFields } from './merge.ts'
import { fieldSetOf } from './typed.ts'

/** How an object of the request's version looks in another one, and back. Neither changes its argument. */
export interface OtherVersion {
  readonly schema: Schema | undefined
  show(object: DeepReadonly<KubeObject>): KubeObject
  back(object: DeepReadonly<KubeObject>): KubeObject
}

/** Undefined for a version that is not served any more: its claims are dropped. */
export type OtherVersions = (apiVersion: string) => OtherVersion | undefined

interface Request {
  readonly apiVersion: string
  readonly schema: Schema | undefined
  /** Absent: all versions have one shape. */
  readonly otherVersion?: OtherVersions | undefined
}

function versionAt({ apiVersion, schema, otherVersion }: Request, wanted: string): OtherVersion | undefined {
  if (wanted !== apiVersion && otherVersion) return otherVersion(wanted)
  const same = (object: DeepReadonly<KubeObject>) => object as KubeObject
  return { schema, show: same, back: same }
}

/** Remembers what `find` says of each version; it is asked for versions other than the request's alone. */
export function perVersion<T>(request: Request, own: T, find: (version: OtherVersion) => T): (apiVersion: string) => T | undefined {
  const { otherVersion } = request
  if (!otherVersion) return () => own
  const known = new Map<string, T | undefined>([[request.apiVersion, own]])
  return (apiVersion) => {
    if (!known.has(apiVersion)) {
      const version = otherVersion(apiVersion)
      known.set(apiVersion, version && find(version))
    }
    return known.get(apiVersion)
  }
}

/** Takes out what a manager applied last, in the version of that time, and what no claim holds in its own version. */
export function pruneAcrossVersions(merged: KubeObject, last: Claim, claims: readonly Claim[], request: Request): KubeObject {
  const then = versionAt(request, last.apiVersion)
  if (!then) return merged
  const owned = new Map<string, FieldSet>()
  for (const { apiVersion, fields } of claims) owned.set(apiVersion, union(owned.get(apiVersion) ?? {}, fields))
  const doomed = difference(last.fields, withNamedParents(owned.get(last.apiVersion) ?? {}))
  let pruned = then.back(without(then.show(merged), doomed, then.schema))
  for (const [apiVersion, fields] of owned) {
    const version = apiVersion === last.apiVersion ? undefined : versionAt(request, apiVersion)
    if (!version) continue
    const whole = version.show(merged)
    const kept = union(setIn(version, pruned), withNamedParents(fields))
    pruned = version.back(without(whole, difference(setIn(version, merged), kept), version.schema))
  }
  // Conversions may lose what nobody applied: only what the manager had can go.
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
