/**
 * Sets the zone hints of the endpoints of topology-mode Auto (L3), pure: an endpoint serves its own zone, unless that zone has endpoints to give and
 * another zone too few. Slices whose hints still fit are not written. Upstream: k8s.io/endpointslice/topologycache (v1.36).
 */
import type { Endpoint, EndpointSlice } from '#api/gen/types/discovery.v1'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import { Heap } from '#base/heap'
import type { NewObject } from '#client/client'
import { idOf, type WantedEndpoints } from './plan.ts'
import { type Allocations, allocate, type ZoneShares } from './zoneShares.ts'

/** The slices of one address type: those that will be written, and those that stay as they are. */
export interface SliceChanges {
  readonly create: readonly NewObject<EndpointSlice>[]
  readonly update: readonly Frozen<EndpointSlice>[]
  readonly unchanged: readonly Frozen<EndpointSlice>[]
}

export interface HintedChanges {
  readonly create: NewObject<EndpointSlice>[]
  readonly update: Frozen<EndpointSlice>[]
  /** Endpoints with hints, by the zone they serve. Absent: the hints were removed. */
  readonly endpointsOfZone?: Map<string, number>
  /** Why the hints were removed: the message of an event. */
  readonly refusal?: string
}

const isReady = ({ conditions }: Frozen<Endpoint>) => conditions?.ready === true

/** Wanted endpoints keep the hints that an equal endpoint has in a slice, so that this slice counts as unchanged. */
export function withPresentHints(groups: readonly WantedEndpoints[], slices: readonly Frozen<EndpointSlice>[]): WantedEndpoints[] {
  const present = new Map(slices.flatMap(({ endpoints }) => endpoints?.map((endpoint) => [idOf(endpoint), endpoint] as const) ?? []))
  return groups.map(({ ports, endpoints }) => ({
    ports,
    endpoints: endpoints.map((endpoint) => {
      const { hints, ...before } = present.get(idOf(endpoint)) ?? {}
      return hints && semanticEqual(before, endpoint) ? { ...endpoint, hints: hints as Endpoint['hints'] & {} } : endpoint
    }),
  }))
}

export function addZoneHints(slices: SliceChanges, shares: ZoneShares | undefined): HintedChanges {
  const all: readonly { readonly endpoints?: readonly Frozen<Endpoint>[] | null | undefined }[] = [...slices.create, ...slices.update, ...slices.unchanged]
  const ready = all.reduce((sum, { endpoints }) => sum + (endpoints?.filter(isReady).length ?? 0), 0)
  const allocations = allocate(shares, ready)
  if (typeof allocations === 'string') return withoutHints(slices, allocations)
  const endpointsOfZone = new Map<string, number>()
  const create = slices.create.map(copyOf)
  const update = [...slices.update, ...misfits(slices.unchanged, allocations, endpointsOfZone)].map(copyOf)
  const written = [...create, ...update].flatMap(({ endpoints }) => endpoints)
  if (!hintOwnZones(written, endpointsOfZone)) return withoutHints(slices, 'One or more endpoints do not have a zone specified')
  redistribute(written, allocations, endpointsOfZone)
  if (endpointsOfZone.size === 0) return withoutHints(slices, 'No hints allocated for zones')
  return { create, update, endpointsOfZone }
}

/** Slices that can be written, with endpoints whose hints can be set. */
const copyOf = <T extends NewObject<EndpointSlice> | Frozen<EndpointSlice>>(slice: T): T & { endpoints: Endpoint[] } => ({
  ...slice,
  endpoints: (slice.endpoints ?? []).map((endpoint) => ({ ...endpoint }) as Endpoint),
})

function withoutHints(slices: SliceChanges, refusal: string): HintedChanges {
  const clear = <T extends NewObject<EndpointSlice> | Frozen<EndpointSlice>>(slice: T): T => {
    const copy = copyOf(slice)
    for (const endpoint of copy.endpoints) delete endpoint.hints
    return copy
  }
  const hinted = slices.unchanged.filter(({ endpoints }) => endpoints?.some(({ hints }) => hints))
  return { create: slices.create.map(clear), update: [...slices.update, ...hinted].map(clear), refusal }
}

/** Counts the hints of unchanged slices. @returns the slices whose hints are missing, name a zone without allocation, or exceed one */
function misfits(unchanged: readonly Frozen<EndpointSlice>[], allocations: Allocations, endpointsOfZone: Map<string, number>): Frozen<EndpointSlice>[] {
  return unchanged.filter((slice) => {
    const counts = hintsOfSlice(slice)
    const fits = counts && [...counts].every(([zone, count]) => count + (endpointsOfZone.get(zone) ?? 0) <= (allocations.get(zone)?.maximum ?? -1))
    if (!fits) return true
    for (const [zone, count] of counts) add(endpointsOfZone, zone, count)
    return false
  })
}

function hintsOfSlice({ endpoints }: Frozen<EndpointSlice>): Map<string, number> | undefined {
  const counts = new Map<string, number>()
  for (const endpoint of endpoints ?? []) {
    if (!isReady(endpoint)) continue
    if (!endpoint.hints?.forZones?.length) return undefined
    for (const { name } of endpoint.hints.forZones) add(counts, name, 1)
  }
  return counts
}

function hintOwnZones(endpoints: readonly Endpoint[], endpointsOfZone: Map<string, number>): boolean {
  for (const endpoint of endpoints) {
    if (!isReady(endpoint)) continue
    if (!endpoint.zone) return false
    endpoint.hints = { forZones: [{ name: endpoint.zone }] }
    add(endpointsOfZone, endpoint.zone, 1)
  }
  return true
}

function redistribute(endpoints: readonly Endpoint[], allocations: Allocations, endpointsOfZone: Map<string, number>): void {
  const { giving, receiving } = transfers(allocations, endpointsOfZone)
  for (const endpoint of endpoints) {
    const [receiver] = receiving.keys()
    if (receiver === undefined) return
    const giver = endpoint.zone ?? ''
    if (!isReady(endpoint) || !giving.has(giver)) continue
    endpoint.hints = { forZones: [{ name: receiver }] }
    take(giving, giver)
    take(receiving, receiver)
    add(endpointsOfZone, giver, -1)
    add(endpointsOfZone, receiver, 1)
  }
}

/** How many endpoints each zone gives to others, and how many each receives. */
function transfers(allocations: Allocations, endpointsOfZone: ReadonlyMap<string, number>) {
  const giving = new Map<string, number>()
  const receiving = new Map<string, number>()
  const most = () => new Heap<{ zone: string; amount: number }>((a, b) => b.amount - a.amount)
  const [surplus, deficit] = [most(), most()]
  for (const [zone, { desired }] of allocations) {
    const amount = (endpointsOfZone.get(zone) ?? 0) - desired
    if (amount > 0) surplus.push({ zone, amount })
    if (amount < 0) deficit.push({ zone, amount: -amount })
  }
  for (;;) {
    const giver = surplus.pop()
    const receiver = deficit.pop()
    // An endpoint moves when one side lacks or has a whole one to spare, and the other at least half of one.
    if (!giver || !receiver || Math.min(giver.amount, receiver.amount) < 0.5 || Math.max(giver.amount, receiver.amount) < 1) return { giving, receiving }
    add(giving, giver.zone, 1)
    add(receiving, receiver.zone, 1)
    surplus.push({ ...giver, amount: giver.amount - 1 })
    deficit.push({ ...receiver, amount: receiver.amount - 1 })
  }
}

function add(counts: Map<string, number>, zone: string, count: number): void {
  counts.set(zone, (counts.get(zone) ?? 0) + count)
}

function take(counts: Map<string, number>, zone: string): void {
  add(counts, zone, -1)
  if (counts.get(zone) === 0) counts.delete(zone)
}
