/**
 * When a pod has to go because of its devices' taints (L3, pure): a NoExecute taint that the claim's request does not tolerate, or does not tolerate any
 * longer. Upstream: pkg/controller/devicetainteviction (v1.36).
 */
import type { DeviceRequestAllocationResult, DeviceTaint, ResourceClaim, ResourceSlice } from '#api/gen/types/resource.v1'
import { deviceTolerationToleratesTaint } from '#api/helpers/deviceTaints'
import type { Frozen } from '#api/machinery/meta'
import { greatest, least } from '#base/extremes'
import { parseTime } from '#base/time'

type Result = Frozen<DeviceRequestAllocationResult>

/** `driver/pool`. */
export function poolKey({ driver, pool }: Pick<Result, 'driver' | 'pool'>): string {
  return `${driver}/${pool}`
}

/** The NoExecute taints of a device, as the newest slices of its pool tell. */
export function noExecuteTaints({ device }: Result, slicesOfPool: readonly Frozen<ResourceSlice>[]): readonly Frozen<DeviceTaint>[] {
  const newest = greatest(slicesOfPool.map(({ spec }) => spec.pool.generation))
  return slicesOfPool
    .filter(({ spec }) => spec.pool.generation === newest)
    .flatMap(({ spec }) => spec.devices?.find(({ name }) => name === device)?.taints ?? [])
    .filter(({ effect }) => effect === 'NoExecute')
}

/** When to evict the pods that use the claim; undefined: never. */
export function evictionTime(claim: Frozen<ResourceClaim>, slicesOf: (poolKey: string) => readonly Frozen<ResourceSlice>[], nowMs: number): number | undefined {
  let dueMs: number | undefined
  for (const result of claim.status?.allocation?.devices?.results ?? [])
    for (const taint of noExecuteTaints(result, slicesOf(poolKey(result)))) {
      const tolerations = result.tolerations?.filter((toleration) => deviceTolerationToleratesTaint(toleration, taint)) ?? []
      const seconds = tolerations.flatMap(({ tolerationSeconds }) => tolerationSeconds ?? [])
      // Tolerated for good.
      if (tolerations.length > 0 && seconds.length === 0) continue
      const sinceMs = parseTime(taint.timeAdded ?? '') ?? nowMs
      const until = sinceMs + (tolerations.length === 0 ? 0 : Math.max(0, least(seconds))) * 1000
      dueMs = Math.min(dueMs ?? until, until)
    }
  return dueMs
}
