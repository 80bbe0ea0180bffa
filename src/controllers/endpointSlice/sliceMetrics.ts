/**
 * Metrics of slices and their endpoints (L3), for both controllers that write them.
 * Upstream: k8s.io/endpointslice/metrics, pkg/controller/endpointslicemirroring/metrics (v1.36).
 */
import { exponentialBuckets, type Metrics } from '#base/metrics'
import type { AddressType, SlicePlan, WantedEndpoints } from './plan.ts'

export interface SliceMetrics {
  /** A sync knows what to do; `before` slices are there. */
  planned(key: string, wanted: ReadonlyMap<AddressType, readonly WantedEndpoints[]>, plan: SlicePlan, before: number): void
  written(operation: 'create' | 'update' | 'delete'): void
  /** What stood behind the service counts no longer. */
  forget(key: string): void
}

/** Of endpoints in one sync. */
export const perSyncBuckets = exponentialBuckets(2, 2, 15)

interface Size {
  readonly endpoints: number
  readonly slices: number
  readonly desiredSlices: number
}

const nothing: Size = { endpoints: 0, slices: 0, desiredSlices: 0 }

/** @param subsystem what the names begin with */
export function createSliceMetrics(metrics: Metrics, subsystem: string, maxPerSlice: number): SliceMetrics {
  const perSync = (what: string) =>
    metrics.histogram({ name: `${subsystem}_endpoints_${what}_per_sync`, help: `Endpoints ${what} in one sync of a service.`, buckets: perSyncBuckets })
  const added = perSync('added')
  const removed = perSync('removed')
  const changes = metrics.counter({ name: `${subsystem}_changes`, help: 'Slices created, updated and deleted.', labels: ['operation'] })
  const gauge = (name: string, help: string) => metrics.gauge({ name: `${subsystem}_${name}`, help }).series({})
  const endpoints = gauge('endpoints_desired', 'Endpoints that there should be.')
  const slices = gauge('num_endpoint_slices', 'Slices that there are.')
  const desiredSlices = gauge('desired_endpoint_slices', 'Slices that would do if all but the last of a service were full.')
  const sizes = new Map<string, Size>()
  const resize = (key: string, size: Size) => {
    const before = sizes.get(key) ?? nothing
    endpoints.add(size.endpoints - before.endpoints)
    slices.add(size.slices - before.slices)
    desiredSlices.add(size.desiredSlices - before.desiredSlices)
    if (size === nothing) sizes.delete(key)
    else sizes.set(key, size)
  }
  return {
    planned(key, wanted, plan, before) {
      added.observe(plan.endpoints.added)
      removed.observe(plan.endpoints.removed)
      let perfect = 0
      for (const group of [...wanted.values()].flat()) perfect += Math.ceil(group.endpoints.length / maxPerSlice)
      const there = before + plan.create.length - plan.remove.length
      resize(key, { endpoints: plan.endpoints.wanted, slices: there, desiredSlices: Math.max(1, perfect) })
    },
    written: (operation) => changes.inc({ operation }),
    forget: (key) => resize(key, nothing),
  }
}

/** Metrics of spec.trafficDistribution: services by value, and slices that each of their syncs changes. */
export function createDistributionMetrics(metrics: Metrics, subsystem: string) {
  const known = new Map<string, string>()
  const changed = metrics.histogram({
    name: `${subsystem}_endpointslices_changed_per_sync`,
    help: 'Slices that one sync of a service wrote or deleted.',
    labels: ['topology', 'traffic_distribution'],
  })
  const counts = metrics.gauge({
    name: `${subsystem}_services_count_by_traffic_distribution`,
    help: 'Services by their spec.trafficDistribution.',
    labels: ['traffic_distribution'],
  })
  const forget = (key: string) => {
    const before = known.get(key)
    if (before !== undefined) counts.dec({ traffic_distribution: before })
    known.delete(key)
  }
  return {
    forget,
    synced(key: string, mode: { readonly topology: 'Auto' | 'Disabled'; readonly distribution: string | undefined }, slices: number) {
      const { topology, distribution } = mode
      changed.observe(slices, { topology, traffic_distribution: distribution ?? '' })
      forget(key)
      if (distribution === undefined) return
      known.set(key, distribution)
      counts.inc({ traffic_distribution: distribution })
    },
  }
}
