/**
 * How long a new node took to be ready (L3), by stage: until its kubelet was there, until that first tried to register, until it was registered, until it
 * was ready. A node that was registered before counts nowhere. Upstream: kubelet/util/nodestartuplatency.go (v1.36).
 */
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'

export interface StartupMetrics {
  /** About to ask the API server to make the node. */
  registering(): void
  /** The node is a new one. */
  registeredNew(): void
  /** The node is ready; only the first call counts. */
  ready(): void
}

/** @param uptimeMs of the machine, now that the kubelet begins; undefined: a node that is no machine */
export function createStartupMetrics({ metrics, clock }: { readonly metrics: Metrics; readonly clock: Clock }, uptimeMs: number | undefined): StartupMetrics {
  const gauge = (stage: string, what: string) =>
    metrics.gauge({ name: `kubelet_node_startup_${stage}duration_seconds`, help: `How long a new node took ${what}, in seconds.` })
  const gauges = {
    preKubelet: gauge('pre_kubelet_', 'until its kubelet began'),
    preRegistration: gauge('pre_registration_', 'from the beginning of its kubelet until that tried to register'),
    registration: gauge('registration_', 'to be registered'),
    postRegistration: gauge('post_registration_', 'from its registration until it was ready'),
    total: gauge('', 'from its boot until it was ready'),
  }
  const beganMs = clock.monotonicMs()
  let triedMs: number | undefined
  let registeredMs: number | undefined
  let isReported = false
  return {
    registering: () => {
      triedMs ??= clock.monotonicMs()
    },
    registeredNew: () => {
      registeredMs ??= clock.monotonicMs()
    },
    ready: () => {
      if (isReported || uptimeMs === undefined || triedMs === undefined || registeredMs === undefined) return
      isReported = true
      const readyMs = clock.monotonicMs()
      gauges.preKubelet.set(uptimeMs / 1000)
      gauges.preRegistration.set((triedMs - beganMs) / 1000)
      gauges.registration.set((registeredMs - triedMs) / 1000)
      gauges.postRegistration.set((readyMs - registeredMs) / 1000)
      gauges.total.set((uptimeMs + readyMs - beganMs) / 1000)
    },
  }
}
