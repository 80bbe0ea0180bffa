/** A running kubelet as its own API (server/) reads it (L3). kubelet.ts implements it; it is empty until run() has begun. */

import type { ObjectEvent } from '#api/debug/traces'
import type { PodStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { MetricFamily } from '#base/metricFamily'
import type { DnsConfig } from '#grpc/criTypes'
import type { KubeletConfig } from './config.ts'
import type { FrozenPod } from './containers.ts'
import type { KubeletContext } from './context.ts'
import type { RuntimeService } from './runtimeService.ts'
import type { MeasuredVolume, VolumeMeasures } from './volumeStats.ts'

/** How far a pod's worker is. */
export interface PodWorkerState {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly stage: 'syncing' | 'terminating' | 'terminated'
  /** A step is under way. */
  readonly isWorking: boolean
  /** The pod is deleted from the API. */
  readonly isDeleted: boolean
  readonly graceSeconds?: number | undefined
}

export interface KubeletView {
  readonly config: KubeletConfig
  readonly runtime: RuntimeService
  pods(): FrozenPod[]
  pod(namespace: string, name: string): FrozenPod | undefined
  /** One for each pod. */
  podWorkers(): PodWorkerState[]
  /** What was noted about an object, such as `pods/default/web`. */
  podTrace(object: string): readonly ObjectEvent[]
  /** The status that this kubelet last reported. */
  podStatus(uid: string): Frozen<PodStatus> | undefined
  context(): KubeletContext | undefined
  /** What is in the pod's /etc/resolv.conf. */
  resolver(pod: FrozenPod): DnsConfig
  /** Measures the mounted volumes of a pod. */
  volumeStatistics(podUid: string, measures: VolumeMeasures): Promise<MeasuredVolume[]>
  /** /metrics/probes. */
  probeMetrics(): readonly MetricFamily[]
  /** When the pod cleanup loop last began a pass. */
  latestLoopEntryMs(): number | undefined
}
