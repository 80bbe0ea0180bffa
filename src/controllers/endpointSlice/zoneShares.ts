/**
 * Computes how many of a Service's endpoints each zone should get (L3), pure: in proportion to the CPU of the zone's nodes, and refused when an
 * endpoint would receive over 20 % more traffic than its share. Upstream: k8s.io/endpointslice/topologycache topologycache.go, utils.go (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import { isNodeReady } from '#api/helpers/nodes'
import type { Frozen } from '#api/machinery/meta'
import { quantityMilliValue } from '#api/machinery/quantity'
import { ownValue } from '#base/bareMap'

const zoneLabel = 'topology.kubernetes.io/zone'
const excludedLabels = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master']
/** An endpoint may receive this much more traffic than its share. */
const overloadThreshold = 0.2
const overloaded = 1 / (1 + overloadThreshold)

/** Zones and the fraction of the cluster's CPU that each has. */
export type ZoneShares = ReadonlyMap<string, number>

export const zoneOf = (node: Frozen<Node>) => ownValue(node.metadata.labels, zoneLabel)

/** Undefined when a ready worker node lacks a zone or CPU, or when there are fewer than two zones. */
export function zoneShares(nodes: Iterable<Frozen<Node>>): ZoneShares | undefined {
  const milliCpuOfZone = new Map<string, number>()
  let total = 0
  for (const node of nodes) {
    if (excludedLabels.some((label) => ownValue(node.metadata.labels, label) !== undefined) || !isNodeReady(node)) continue
    const zone = zoneOf(node)
    const milliCpu = quantityMilliValue(node.status?.allocatable?.cpu ?? 0)
    if (!zone || milliCpu === 0) return undefined
    total += milliCpu
    milliCpuOfZone.set(zone, (milliCpuOfZone.get(zone) ?? 0) + milliCpu)
  }
  if (milliCpuOfZone.size < 2) return undefined
  return new Map([...milliCpuOfZone].map(([zone, milliCpu]) => [zone, milliCpu / total]))
}

/** The number of endpoints for one zone. */
export interface Allocation {
  readonly maximum: number
  readonly desired: number
}

export type Allocations = ReadonlyMap<string, Allocation>

/** @returns the allocations of the zones, or the message of the event that says why there are none */
export function allocate(shares: ZoneShares | undefined, endpoints: number): Allocations | string {
  if (!shares) return 'Insufficient Node information: allocatable CPU or zone not specified on one or more nodes'
  const counts = `(${endpoints} endpoints, ${shares.size} zones)`
  if (shares.size > endpoints) return `Insufficient number of endpoints ${counts}`
  const minimums = new Map([...shares].map(([zone, share]) => [zone, Math.ceil(share * endpoints * overloaded)]))
  const spare = endpoints - [...minimums.values()].reduce((sum, minimum) => sum + minimum, 0)
  if (spare < 0) return `Unable to allocate minimum required endpoints to each zone without exceeding overload threshold ${counts}`
  const allocations = new Map<string, Allocation>()
  for (const [zone, minimum] of minimums) allocations.set(zone, { maximum: minimum + spare, desired: Math.max((shares.get(zone) ?? 0) * endpoints, minimum) })
  return allocations
}

/** True when a zone has fewer endpoints than its share allows. */
export function isOverloaded(endpointsOfZone: ReadonlyMap<string, number>, shares: ZoneShares | undefined): boolean {
  if (endpointsOfZone.size === 0) return false
  if (!shares) return true
  const total = [...endpointsOfZone.values()].reduce((sum, count) => sum + count, 0)
  for (const [zone, share] of shares) {
    const count = endpointsOfZone.get(zone)
    if (count === undefined || count < Math.ceil(total * share * overloaded)) return true
  }
  return false
}
