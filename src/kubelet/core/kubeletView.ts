/** A running kubelet as its own API (server/) reads it (L3). kubelet.ts implements it; it is empty until run() has begun. */
import type { PodStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { KubeletConfig } from './config.ts'
import type { FrozenPod } from './containers.ts'
import type { KubeletContext } from './context.ts'
import type { RuntimeService } from './runtimeService.ts'

export interface KubeletView {
  readonly config: KubeletConfig
  readonly runtime: RuntimeService
  pods(): FrozenPod[]
  pod(namespace: string, name: string): FrozenPod | undefined
  /** The status that this kubelet last reported. */
  podStatus(uid: string): Frozen<PodStatus> | undefined
  context(): KubeletContext | undefined
  /** The text of /metrics/probes. */
  probeMetrics(): string
  /** When the loop that looks after this node's pods last went round. */
  latestLoopEntryMs(): number | undefined
}
