/**
 * The data of a workload's ControllerRevision (L1): a strategic merge patch that brings the template back, in Go's order of members.
 * Upstream: getPatch of pkg/controller/{daemon,statefulset}, HashControllerRevision of pkg/controller/history (v1.36).
 */
import { fnv32 } from '#base/fnv'
import { goJson } from '../machinery/goJson.ts'
import type { Frozen } from '../machinery/meta.ts'
import { safeEncode } from './podTemplateHash.ts'

export interface RevisionData {
  readonly spec: { readonly template: Readonly<Record<string, unknown>> }
}

/** @param workload as Go's JSON shows it */
export function revisionData(workload: Frozen<{ spec: { template: object } }>): RevisionData {
  const template = sorted({ ...workload.spec.template, $patch: 'replace' }) as Readonly<Record<string, unknown>>
  return { spec: { template } }
}

/** The hash in the name of a StatefulSet's revision. */
export function revisionDataHash(data: RevisionData, collisionCount: number | undefined): string {
  return safeEncode(String(fnv32(`${goJson(data)}${collisionCount ?? ''}`)))
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, sorted(member)]))
}
