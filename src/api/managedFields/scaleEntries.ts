/**
 * Ownership of a count of replicas (L1): entries of a Scale own spec.replicas, entries of the object own the field in which its kind keeps
 * the count. Pure.
 * Upstream: apimachinery/pkg/util/managedfields/scalehandler.go (v1.36). Unlike upstream, a manager that updates keeps its time, and stays one entry.
 */
import type { ManagedFieldsEntry } from '../machinery/meta.ts'
import type { Claim } from './claims.ts'
import { decodeClaims, type Entry } from './decodeClaims.ts'
import { encodeClaims } from './encodeClaims.ts'
import { difference, type FieldSet, intersection, isEmpty, setOfFields, union } from './fieldSet.ts'

type Entries = readonly Entry[] | undefined

const scaleApiVersion = 'autoscaling/v1'
const replicasOfScale = setOfFields(['spec.replicas'])

/** The dotted path of the replicas by apiVersion of the object; undefined where a version has no scale. */
export type ReplicasPaths = ReadonlyMap<string, string | undefined>

/** The entries of the managers that own the Scale's replicas. Entries of an unknown version are left out. */
export function toScaleEntries(parent: Entries, paths: ReplicasPaths): ManagedFieldsEntry[] {
  const claims = decodeClaims(parent) ?? []
  return encodeClaims(
    claims
      .filter((claim) => owns(claim, pathSet(paths, claim.apiVersion)))
      .map((claim) => ({ ...claim, apiVersion: scaleApiVersion, fields: replicasOfScale })),
  )
}

/** The object's entries after a write of its Scale: a manager that lost the replicas there loses them here, one that gained them gains them in `apiVersion`. */
export function toParentEntries(parent: Entries, scale: Entries, paths: ReplicasPaths, apiVersion: string): ManagedFieldsEntry[] {
  const gained = (decodeClaims(scale) ?? []).filter((claim) => owns(claim, replicasOfScale))
  const claims: Claim[] = []
  for (const claim of decodeClaims(parent) ?? []) {
    if (!paths.has(claim.apiVersion)) continue
    const path = pathSet(paths, claim.apiVersion)
    const at = gained.findIndex((one) => isSame(one, claim))
    if (at >= 0) {
      const [own] = gained.splice(at, 1)
      claims.push(owns(claim, path) ? claim : { ...claim, time: own?.time, fields: union(claim.fields, path) })
      continue
    }
    const fields = difference(claim.fields, path)
    if (!isEmpty(fields)) claims.push(fields === claim.fields ? claim : { ...claim, fields })
  }
  const own = pathSet(paths, apiVersion)
  return encodeClaims([...claims, ...gained.map((claim) => ({ ...claim, apiVersion, fields: own }))])
}

/** Whether two claims belong to one manager. Their versions differ, because one of them is the Scale's. */
function isSame(a: Claim, b: Claim): boolean {
  return a.manager === b.manager && a.operation === b.operation && a.subresource === b.subresource
}

function pathSet(paths: ReplicasPaths, apiVersion: string): FieldSet {
  const path = paths.get(apiVersion)
  return path === undefined ? {} : setOfFields([path.replace(/^\./, '')])
}

function owns(claim: Claim, path: FieldSet): boolean {
  return !isEmpty(intersection(claim.fields, path))
}
