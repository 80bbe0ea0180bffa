/**
 * Remembers which Services of topology-mode Auto have zone hints (L3), and the zones' shares of the cluster's CPU, so that a change of nodes syncs
 * only the Services that it overloads. Upstream: k8s.io/endpointslice/topologycache topologycache.go, reconciler.go (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { AddressType } from './plan.ts'
import { addZoneHints, type HintedChanges, type SliceChanges } from './zoneHints.ts'
import { isOverloaded, type ZoneShares, zoneShares } from './zoneShares.ts'

export interface TopologyEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: 'TopologyAwareHintsEnabled' | 'TopologyAwareHintsDisabled'
  readonly message: string
}

export interface TopologyCache {
  /** The next question reads the nodes again. */
  nodesChanged(): void
  /** Keys of the Services with hints that leave a zone with too few endpoints. */
  overloaded(): string[]
  /** Adds hints to the slices of one address type, or removes them when they cannot be given. */
  hint(key: string, type: AddressType, slices: SliceChanges): HintedChanges & { readonly events: readonly TopologyEvent[] }
  /** The Service no longer wants hints for this address type. */
  unhint(key: string, type: AddressType): readonly TopologyEvent[]
  forget(key: string): void
}

export function createTopologyCache(nodes: () => Iterable<Frozen<Node>>): TopologyCache {
  const endpointsOfZone = new Map<string, Map<AddressType, ReadonlyMap<string, number>>>()
  /** Services whose last sync gave hints. */
  const hinted = new Set<string>()
  let known: { readonly shares: ZoneShares | undefined } | undefined

  function shares(): ZoneShares | undefined {
    known ??= { shares: zoneShares(nodes()) }
    return known.shares
  }
  function remove(key: string, type: AddressType): void {
    const ofService = endpointsOfZone.get(key)
    ofService?.delete(type)
    if (ofService?.size === 0) endpointsOfZone.delete(key)
    hinted.delete(key)
  }
  const event = (enabled: boolean, message: string, type: AddressType): TopologyEvent => ({
    type: enabled ? 'Normal' : 'Warning',
    reason: enabled ? 'TopologyAwareHintsEnabled' : 'TopologyAwareHintsDisabled',
    message: `${message}, addressType: ${type}`,
  })
  return {
    nodesChanged: () => {
      known = undefined
    },
    overloaded: () =>
      [...endpointsOfZone].filter(([, ofService]) => [...ofService.values()].some((counts) => isOverloaded(counts, shares()))).map(([key]) => key),
    hint(key, type, slices) {
      const changes = addZoneHints(slices, shares())
      if (!changes.endpointsOfZone) {
        remove(key, type)
        return { ...changes, events: [event(false, changes.refusal ?? '', type)] }
      }
      const ofService = endpointsOfZone.get(key) ?? new Map<AddressType, ReadonlyMap<string, number>>()
      endpointsOfZone.set(key, ofService.set(type, changes.endpointsOfZone))
      const events = hinted.has(key) ? [] : [event(true, 'Topology Aware Hints has been enabled', type)]
      hinted.add(key)
      return { ...changes, events }
    },
    unhint(key, type) {
      const events = hinted.has(key) ? [event(false, 'Topology Aware Hints has been disabled', type)] : []
      remove(key, type)
      return events
    },
    forget(key) {
      endpointsOfZone.delete(key)
      hinted.delete(key)
    },
  }
}
