/**
 * The versions of a resource as ownership sees them (L1): a claim names fields of the version that it was made in, so changes and removals
 * are looked at in that version.
 * Upstream: structured-merge-diff/v6/merge/update.go, whose Converter this is (v1.36).
 */
import type { DeepReadonly } from '#base/frozen'
import type { KubeObject } from '../machinery/meta.ts'
import type { Schema } from '../schema/schema.ts'

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

export function versionAt({ apiVersion, schema, otherVersion }: Request, wanted: string): OtherVersion | undefined {
  if (wanted !== apiVersion && otherVersion) return otherVersion(wanted)
  const same = (object: DeepReadonly<KubeObject>) => object as KubeObject
  return { schema, show: same, back: same }
}

/** Finds a value for each version, once, and never for the request's own version. */
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
