/** Carries out what plan.ts has decided (L3), and remembers it until the cache has seen it. Upstream: k8s.io/endpointslice reconciler.go finalize (v1.36). */
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { isStatus } from '#api/machinery/status'
import type { ResourceClient } from '#client/client'
import type { WriteTracker } from '../shared/writeTracker.ts'
import type { SlicePlan } from './plan.ts'
import type { SliceMetrics } from './sliceMetrics.ts'

interface Deps {
  readonly client: ResourceClient<EndpointSlice>
  readonly tracker: WriteTracker
  readonly metrics: SliceMetrics
}

/** @param key of what the slices are for */
export async function writeSlices(key: string, plan: SlicePlan, { client, tracker, metrics }: Deps, signal: AbortSignal): Promise<void> {
  for (const slice of plan.create) {
    tracker.wrote(key, await client.create(slice, { signal }))
    metrics.written('create')
  }
  for (const slice of plan.update) {
    tracker.wrote(key, await client.update(slice, { signal }))
    metrics.written('update')
  }
  for (const slice of plan.remove) {
    tracker.removed(key, slice)
    try {
      await client.delete({ namespace: slice.metadata.namespace, name: slice.metadata.name ?? '' }, { signal })
      metrics.written('delete')
    } catch (error) {
      if (!isStatus(error, 'NotFound')) throw error
    }
  }
}
