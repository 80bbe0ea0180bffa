/**
 * Records for the audit log how long a request waits for the store and for the decoding of objects (L3).
 * Upstream: StorageTracker and DecodeTracker of apiserver/pkg/endpoints/request/webhook_duration.go.
 */
import type { Clock } from '#base/clock'
import type { LatencyLayer, RequestAudit } from '../core/request.ts'
import type { WriteContext } from './storedResource.ts'

/** Measures work of one layer. Without an audited request it only does the work. */
export type Measure = <T>(layer: LatencyLayer, work: () => T) => T

/** The measure for one request; it does only the work when the request is not audited. */
export function latencyMeasure(clock: Clock, audit: RequestAudit | undefined): Measure {
  if (!audit) return (_, work) => work()
  return (layer, work) => {
    const startedMs = clock.monotonicMs()
    const note = () => audit.spent(layer, clock.monotonicMs() - startedMs)
    const result = work()
    if (result instanceof Promise) return result.finally(note) as typeof result
    note()
    return result
  }
}

/** Counts a write as time in the store. */
export function notingStoreLatency<T>({ clock }: { readonly clock: Clock }, { request }: WriteContext, write: () => Promise<T>): Promise<T> {
  return latencyMeasure(clock, request?.audit)('etcd', write)
}
