/**
 * Completes the plan of a Service's slices with the zone hints of topology-mode Auto (L3), for each address type on its own: one may get hints while
 * the other does not. Upstream: k8s.io/endpointslice reconciler.go reconcileByAddressType (v1.36).
 */
import type { Service } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { Frozen } from '#api/machinery/meta'
import { append } from '#base/extremes'
import type { NewObject } from '#client/client'
import { type AddressType, addressTypes, type SlicePlan, wantsTopologyHints } from './plan.ts'
import type { TopologyCache, TopologyEvent } from './topologyCache.ts'
import type { SliceChanges } from './zoneHints.ts'

/** @param there the Service's slices before the plan */
export function hintPlan(
  topology: TopologyCache,
  key: string,
  service: Frozen<Service>,
  plan: SlicePlan,
  there: readonly Frozen<EndpointSlice>[],
): { readonly plan: SlicePlan; readonly events: readonly TopologyEvent[] } {
  const types = addressTypes(service)
  for (const { addressType } of there) if (!types.includes(addressType as AddressType)) topology.unhint(key, addressType as AddressType)
  if (!wantsTopologyHints(service)) return { plan, events: types.flatMap((type) => topology.unhint(key, type)) }
  const create: NewObject<EndpointSlice>[] = []
  const update: Frozen<EndpointSlice>[] = []
  const events: TopologyEvent[] = []
  for (const type of types) {
    const hinted = topology.hint(key, type, changesOf(type, plan, there))
    append(create, hinted.create)
    append(update, hinted.update)
    append(events, hinted.events)
  }
  return { plan: { ...plan, create, update }, events }
}

function changesOf(type: AddressType, plan: SlicePlan, there: readonly Frozen<EndpointSlice>[]): SliceChanges {
  const planned = new Set([...plan.update, ...plan.remove].map(({ metadata }) => metadata.name))
  const isOfType = ({ addressType }: { readonly addressType: string }) => addressType === type
  return {
    create: plan.create.filter(isOfType),
    update: plan.update.filter(isOfType),
    unchanged: there.filter((slice) => isOfType(slice) && !planned.has(slice.metadata.name)),
  }
}
