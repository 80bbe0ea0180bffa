/** Records the store's latency of a write for the audit log (L3). Upstream: StorageTracker of apiserver/pkg/endpoints/request/webhook_duration.go. */
import type { Clock } from '#base/clock'
import type { WriteContext } from './storedResource.ts'

export function notingStoreLatency<T>({ clock }: { readonly clock: Clock }, { request }: WriteContext, write: () => Promise<T>): Promise<T> {
  const audit = request?.audit
  if (!audit) return write()
  const startedMs = clock.monotonicMs()
  return write().finally(() => audit.spent('etcd', clock.monotonicMs() - startedMs))
}
