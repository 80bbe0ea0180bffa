/**
 * What a controller is (L3): a name, and a function that makes a Component out of the context. Published as skiff/controller.
 * Upstream: cmd/kube-controller-manager/app/controller_descriptor.go (v1.36).
 */
import type { Pod, Secret, ServiceAccount } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { FeatureGateSettings } from '#base/featureGates'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import type { Random } from '#base/random'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import type { EventRecorder } from '#client/eventRecorder'

/** The feature gates that controllers ask for. */
export const turnableFeatures = ['MaxUnavailableStatefulSet'] as const

export interface ControllerOptions {
  /** Workers per controller, by upstream's controller name; see each controller for its default. */
  readonly concurrentSyncs?: Readonly<Record<string, number>> | undefined
  /** PEM of the cluster's CA, for the kube-root-ca.crt ConfigMaps. */
  readonly rootCa?: string | undefined
  /** What --feature-gates says; absent ones are as v1.36 has them by default. */
  readonly featureGates?: FeatureGateSettings | undefined
  /** One range, or one of each family with a comma between. */
  readonly clusterCidr?: string | undefined
  /** Addresses that no node may have for its pods. */
  readonly serviceCidr?: string | undefined
  readonly nodeCidrMaskSize?: number | undefined
  readonly nodeCidrMaskSizeIpv4?: number | undefined
  readonly nodeCidrMaskSizeIpv6?: number | undefined
  readonly nodeMonitorPeriodMs?: number | undefined
  readonly nodeMonitorGracePeriodMs?: number | undefined
  readonly nodeStartupGracePeriodMs?: number | undefined
  /** How fast nodes are evicted from; upstream's --node-eviction-rate, --secondary-node-eviction-rate and thresholds. */
  readonly nodeEviction?: NodeEviction | undefined
  readonly terminatedPodGcThreshold?: number | undefined
  /** How often quotas are counted anew without cause. Default 5 min. */
  readonly resourceQuotaSyncPeriodMs?: number | undefined
  /** Signs what is approved for the built-in signers; absent: nothing is signed. */
  readonly clusterSigning?: ClusterSigning | undefined
  /** A token of a secret for a service account, which does not expire; absent: such secrets stay empty. */
  readonly serviceAccountToken?: ((account: Frozen<ServiceAccount>, secret: Frozen<Secret>) => string) | undefined
  readonly endpoints?: EndpointOptions | undefined
  /** How often namespaces that are being deleted are looked at without cause. Default 5 min. */
  readonly namespaceSyncPeriodMs?: number | undefined
  readonly volumeBinding?: VolumeBindingOptions | undefined
  readonly attaching?: AttachingOptions | undefined
  /** Directories of the controllers' own machine; absent: volumes of type hostPath are neither made nor deleted here. */
  readonly hostPaths?: HostPaths | undefined
  /** For how long nobody may have used such a token before it is taken away. Default a year. */
  readonly legacyTokenCleanUpPeriodMs?: number | undefined
}

export interface EndpointOptions {
  /** Default 100. */
  readonly maxPerSlice?: number | undefined
  /** Of hand-written Endpoints that are mirrored. Default 1000. */
  readonly maxPerSubset?: number | undefined
  /** How long changes of pods are gathered before Endpoints are written. Default 0. */
  readonly batchMs?: number | undefined
  /** The same for EndpointSlices. Default 0. */
  readonly sliceBatchMs?: number | undefined
  /** How long changes of Endpoints are gathered before they are mirrored. Default 0. */
  readonly mirrorBatchMs?: number | undefined
}

export interface VolumeBindingOptions {
  /** How often volumes and claims are looked at without cause. Default 15 s. */
  readonly syncPeriodMs?: number | undefined
  /** Whether drivers are told to make volumes. Default true. */
  readonly dynamicProvisioning?: boolean | undefined
  /** Whether volumes of type hostPath are made, for development on one machine. Default false. */
  readonly provisionHostPaths?: boolean | undefined
  readonly recycleHostPath?: RecyclerOptions | undefined
  readonly recycleNfs?: RecyclerOptions | undefined
}

export interface AttachingOptions {
  /** How often all nodes are looked at without cause; 0: never. Default 1 min. */
  readonly syncPeriodMs?: number | undefined
  /** Never detach what may still be mounted, however long the node is silent. Default false. */
  readonly neverForce?: boolean | undefined
}

/** The pod that empties a volume whose reclaim policy is Recycle. */
export interface RecyclerOptions {
  /** How long it may take at least. Default 60 for hostPath, 300 for NFS. */
  readonly minimumSeconds?: number | undefined
  /** How long it may take for each Gi of the volume. Default 30. */
  readonly secondsPerGi?: number | undefined
  /** Its first volume becomes the one to empty. */
  readonly template?: Pod | undefined
}

export interface HostPaths {
  make(path: string): Promise<void>
  /** With all that is in it. */
  remove(path: string): Promise<void>
}

export interface NodeEviction {
  /** Nodes a second. Default 0.1. */
  readonly evictionRate?: number
  /** Nodes a second of a big zone that is partly out. Default 0.01. */
  readonly secondaryEvictionRate?: number
  /** Default 50. */
  readonly largeClusterSizeThreshold?: number
  /** Default 0.55. */
  readonly unhealthyZoneThreshold?: number
}

export interface ClusterSigning {
  /** The longest that a certificate may live; default a year. */
  readonly durationMs?: number | undefined
  /** PEM of certificate and key, by the signer's name; undefined: this one does not sign. Asked each time: authorities are renewed. */
  authorityOf(signer: string): { readonly cert: string; readonly key: string } | undefined
}

export interface ControllerContext {
  /** Acts as the controller's own service account. */
  readonly client: Client
  /** One set for all controllers, under system:kube-controller-manager. */
  readonly informers: SharedInformerFactory
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  /** The recorder of one source component. */
  events(component: string): EventRecorder
  readonly options: ControllerOptions
}

/** Multiples of the client rate limit of the process. */
export interface ClientRateFactors {
  readonly qps?: number | undefined
  readonly burst?: number | undefined
}

export interface ControllerDescriptor {
  /** Upstream's name, as in --controllers. */
  readonly name: string
  /** Names that upstream used before. */
  readonly aliases: readonly string[]
  /** Of kube-system: whom the controller acts as, with the rights that the bootstrap policy gives it. */
  readonly serviceAccount: string
  /** Acts as the manager itself, not as a service account. */
  readonly actsAsManager?: boolean | undefined
  /** For a controller that makes more requests than others. Default 1. */
  readonly clientRate?: ClientRateFactors | undefined
  /** Runs only when named, not for '*'. */
  readonly disabledByDefault?: boolean | undefined
  create(context: ControllerContext): Component
}
