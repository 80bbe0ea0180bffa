/**
 * The versions of one object that the store still has (L4), newest first. Each version names its revision; the state one revision before it is the version
 * before. Deleted objects, and earlier ones of the same name, are searched at up to 512 revisions: one that existed only between two of them is not found.
 */
import type { Transport } from '#client/transport'
import { type Kind, objectAt, type PastObject } from './objects.ts'

export interface Version {
  readonly revision: number
  /** Absent: the object was deleted at this revision. */
  readonly object?: PastObject | undefined
  /** Absent: it was created at this revision, or what it replaced is compacted. */
  readonly before?: PastObject | undefined
}

export interface Versions {
  readonly versions: readonly Version[]
  /** Whether the limit, or the end of the history, cut off older versions. */
  readonly isCut: boolean
}

interface Wanted {
  readonly kind: Kind
  readonly namespace: string
  readonly name: string
  /** The range of revisions that can be read. */
  readonly oldest: number
  readonly newest: number
  readonly limit: number
  /** False: no search for deleted objects. */
  readonly searches?: boolean | undefined
}

type Read = (revision: number) => Promise<PastObject | undefined>

/** What is left of the reads for searches. */
interface Budget {
  probes: number
}

export async function versionsOf(transport: Transport, wanted: Wanted): Promise<Versions> {
  const { kind, oldest, limit } = wanted
  const read: Read = (revision) => objectAt(transport, kind, wanted, revision)
  const versions: Version[] = []
  const budget = { probes: wanted.searches === false ? 0 : mostProbes }
  let at = wanted.newest
  let object = await read(at)
  for (;;) {
    if (!object) {
      const found = await lastBefore(read, at, oldest, budget)
      if (!found) return { versions, isCut: budget.probes <= 0 }
      if (versions.length === limit) return { versions, isCut: true }
      versions.push({ revision: found.revision + 1, before: found.object })
      object = found.object
      continue
    }
    if (versions.length === limit) return { versions, isCut: true }
    const revision = Number(object.metadata.resourceVersion)
    at = revision - 1
    if (at < oldest) return { versions: [...versions, { revision, object }], isCut: true }
    const before: PastObject | undefined = await read(at)
    versions.push({ revision, object, before })
    object = before
  }
}

/** Reads that one search for an earlier object of the name takes at most, and all searches together. */
const probesOfSearch = 512
const mostProbes = 2_000
const probesAtOnce = 8

/** The last state before `absent` in which the object existed, as far as probes find it. */
async function lastBefore(read: Read, absent: number, oldest: number, budget: Budget): Promise<{ revision: number; object: PastObject } | undefined> {
  const points = probePoints(absent, oldest)
  let high = absent
  for (let at = 0; at < points.length && budget.probes > 0; at += probesAtOnce) {
    const some = points.slice(at, at + probesAtOnce)
    budget.probes -= some.length
    for (const [index, object] of (await Promise.all(some.map(read))).entries()) {
      const low = some[index] as number
      if (object) return search(read, low, object, high)
      high = low
    }
  }
  return undefined
}

/** Revisions below `absent`, the newest first: dense near it, and evenly down to the oldest. */
export function probePoints(absent: number, oldest: number): number[] {
  const points = new Set<number>()
  for (let step = 1; absent - step >= oldest; step *= 2) points.add(absent - step)
  const stride = Math.max((absent - oldest) / probesOfSearch, 1)
  for (let at = oldest; at < absent; at += stride) points.add(Math.floor(at))
  return [...points].sort((a, b) => b - a)
}

/** The last revision in [low, high) at which the object exists, given that it does at `low` and does not at `high`. */
async function search(read: Read, low: number, object: PastObject, high: number) {
  let last = { revision: low, object }
  for (let end = high; end - last.revision > 1; ) {
    const middle = (last.revision + end) >> 1
    const there = await read(middle)
    if (there) last = { revision: middle, object: there }
    else end = middle
  }
  return last
}

interface ManagedFields {
  readonly manager?: string
  readonly operation?: string
  readonly subresource?: string
  readonly time?: string
}

/** The manager whose entry the write changed: its name, operation and subresource. A second write in the same second changes none: then the newest, if one is. */
export function managerOf({ object, before }: Version): string | undefined {
  const known = new Set(entriesOf(before).map((entry) => JSON.stringify(entry)))
  const entries = entriesOf(object).toSorted((a, b) => ((a.time ?? '') < (b.time ?? '') ? 1 : -1))
  const [first, second] = entries
  const newest = first?.time === second?.time ? undefined : first
  const writer = entries.find((entry) => !known.has(JSON.stringify(entry))) ?? newest
  return writer && `${writer.manager} (${[writer.operation, writer.subresource].filter(Boolean).join(' of ')})`
}

function entriesOf(object: PastObject | undefined): readonly ManagedFields[] {
  return (object?.metadata.managedFields ?? []) as readonly ManagedFields[]
}
