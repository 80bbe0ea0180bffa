/** Health of the loop that cleans up this node's pods (L3, pure). Upstream: syncLoopHealthCheck of kubelet/server/server.go (v1.36). */
import type { Clock } from '#base/clock'
import type { KubeletView } from '../core/kubeletView.ts'

const minLoopMs = 300_000

/** Undefined: it went round lately, or has not begun. */
export function syncLoopFault(view: KubeletView, clock: Clock): string | undefined {
  const entered = view.latestLoopEntryMs()
  const allowed = Math.max(minLoopMs, 2 * view.config.syncFrequencyMs)
  return entered !== undefined && clock.now() > entered + allowed ? 'sync Loop took longer than expected' : undefined
}
