/**
 * The dependencies that the kubelet's parts share (L3), created once for each kubelet by parts.ts. The folder core/ has what several subfolders use and
 * imports none of them: settings (config.ts), the machine (host.ts), questions about pods and containers, the interface of the runtime and its status,
 * caches of API objects, and interfaces that a subfolder implements for others (kubeletView.ts, resourceService.ts, probeResults.ts, volumeStats.ts).
 */
import type { Pod, Service } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import type { Tracer } from '#base/traceContext'
import type { Client } from '#client/client'
import type { EventRecorder, EventWriter } from '#client/eventRecorder'
import type { ObjectTrace } from '#trace/objectTrace'
import type { CallLog } from './callLog.ts'
import type { KubeletConfig } from './config.ts'
import type { KubeletHost, MachineInfo } from './host.ts'
import type { UserNamespaces } from './idRanges.ts'
import type { KubeletSources } from './kubeletSources.ts'
import type { NodeNetwork } from './nodeNetwork.ts'
import type { ObjectCache } from './objectCache.ts'
import type { ResourceManager } from './resourceService.ts'
import type { RuntimeService } from './runtimeService.ts'

/** The node's pod network, which may have to prepare for a pod. */
export interface PodNetwork {
  /**
   * Resolves when the pod's containers may start: the rules for these addresses of its sandbox are in force.
   * @throws Error when they are not within the time that the network allows itself
   */
  podNetworkReady(pod: Frozen<Pod>, addresses: readonly string[], signal: AbortSignal): Promise<void>
}

export interface KubeletDeps {
  readonly client: Client
  /** Another one for events, which have a limit of their own. */
  readonly eventClient?: Client | undefined
  /** Absent: the kubelet's own watches. */
  readonly sources?: KubeletSources | undefined
  /** Writes the events of several kubelets. Absent: this one writes its own. */
  readonly eventWriter?: EventWriter | undefined
  /** There is no API server: only static pods run, and their status is not reported. */
  readonly isStandalone?: boolean | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  /** Absent: no spans are made. */
  readonly tracer?: Tracer | undefined
  readonly runtime: RuntimeService
  /** Notes steps and calls of the runtime for pods that a reader follows. Absent: nothing is noted. */
  readonly trace?: ObjectTrace | undefined
  /** Absent: the network needs no preparation after the sandbox is there. */
  readonly podNetwork?: PodNetwork | undefined
  /** For the views; absent on a node without a network, as simulated ones are. */
  readonly nodeNetwork?: NodeNetwork | undefined
  /** For the view of calls; absent on a simulated node. */
  readonly calls?: CallLog | undefined
  /** Needed when the runtime uses the machine. */
  readonly host?: KubeletHost | undefined
  /** Needed without a host: what a simulated node claims to be. */
  readonly machine?: MachineInfo | undefined
}

/** What the resource manager is made from: everything but the node's resources. */
export interface KubeletBase extends KubeletDeps {
  readonly config: KubeletConfig
  readonly sources: KubeletSources
  readonly recorder: EventRecorder
  readonly objects: ObjectCache
  readonly machineInfo: MachineInfo
  readonly userNamespaces: UserNamespaces
  services(): readonly Frozen<Service>[]
}

export interface KubeletContext extends KubeletBase {
  /** The node's allocatable resources as they are now. */
  readonly allocatable: Readonly<Record<string, string>>
  /** Hands out CPUs, memory and devices. */
  readonly resources: ResourceManager
}
