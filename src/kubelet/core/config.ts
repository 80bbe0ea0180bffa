/**
 * The kubelet's settings (L3): the fields of KubeletConfiguration v1beta1 that it supports, with upstream's names and defaults,
 * plus where its node's directories and cgroups are. Upstream: kubelet/apis/config/v1beta1/defaults.go (v1.36).
 */
import type { Taint } from '#api/gen/types/core.v1'
import { type ResourcesConfig, resourcesDefaults } from './resourceConfig.ts'

/** For which images on the node pods must show that they may have them. */
export type VerificationPolicy = 'NeverVerify' | 'NeverVerifyPreloadedImages' | 'NeverVerifyAllowlistedImages' | 'AlwaysVerify'

/** Pods of at least this priority, up to the next one's, get so many seconds. */
export interface ShutdownGracePeriod {
  readonly priority: number
  readonly shutdownGracePeriodSeconds: number
}

export interface KubeletConfig extends ResourcesConfig {
  readonly nodeName: string
  /** The node's own addresses, first the one that others use. */
  readonly nodeIPs: readonly string[]
  readonly nodeLabels: Readonly<Record<string, string>>
  readonly registerWithTaints: readonly Taint[]
  readonly providerID: string
  /** False: the Node is created by another component. */
  readonly registerNode: boolean
  /** As the containers' runtime sees them. */
  readonly rootDirectory: string
  readonly podLogsDirectory: string
  readonly cgroupRoot: string
  readonly clusterDNS: readonly string[]
  readonly clusterDomain: string
  /** The node's resolver configuration; empty text: none. */
  readonly resolvConf: string
  readonly maxPods: number
  /** No more pods than so many for each CPU; 0: only maxPods counts. */
  readonly podsPerCore: number
  /** A cloud controller manager makes the node ready for pods and knows its addresses. */
  readonly externalCloudProvider: boolean
  /** The number of user ids of a pod with a user namespace. */
  readonly userNamespaces: { readonly idsPerPod?: number | undefined }
  readonly cpuCFSQuota: boolean
  readonly cpuCFSQuotaPeriodMs: number
  readonly nodeStatusUpdateFrequencyMs: number
  readonly nodeStatusReportFrequencyMs: number
  readonly nodeLeaseDurationSeconds: number
  /** Images that the node's status lists at most; -1: all. */
  readonly nodeStatusMaxImages: number
  /** How long a node that shuts down waits for its pods, and how much of that for critical ones; 0: none. */
  readonly shutdownGracePeriodMs: number
  readonly shutdownGracePeriodCriticalPodsMs: number
  /** The same by priority, instead. */
  readonly shutdownGracePeriodByPodPriority: readonly ShutdownGracePeriod[]
  /** How often every pod is synced without a change; 0: never. */
  readonly syncFrequencyMs: number
  /** The slow relist that catches what runtime events missed; 0: never. */
  readonly relistPeriodMs: number
  /** Signal → threshold, a quantity or a percentage: pods are evicted below it. Empty: never. */
  readonly evictionHard: Readonly<Record<string, string>>
  /** The same, but only after the signal's grace period: Go durations by signal. */
  readonly evictionSoft: Readonly<Record<string, string>>
  readonly evictionSoftGracePeriod: Readonly<Record<string, string>>
  /** Signal → how much more than the threshold must be free again. */
  readonly evictionMinimumReclaim: Readonly<Record<string, string>>
  /** A pressure condition holds this long after it was last seen, so that a node does not flap. */
  readonly evictionPressureTransitionPeriodMs: number
  /** Seconds that pods get when a soft threshold ends them. */
  readonly evictionMaxPodGracePeriod: number
  /** Signals that evictionHard leaves out keep their default. */
  readonly mergeDefaultEvictionSettings: boolean
  /** Whether limits on ephemeral storage are watched. */
  readonly localStorageCapacityIsolation: boolean
  readonly imageMinimumGCAgeMs: number
  /** Images unused for longer go however much room there is; 0: they stay. */
  readonly imageMaximumGCAgeMs: number
  readonly imageGCHighThresholdPercent: number
  readonly imageGCLowThresholdPercent: number
  readonly imageGCPeriodMs: number
  readonly containerGCPeriodMs: number
  readonly serializeImagePulls: boolean
  /** The limit of parallel pulls when they are not serialized; absent: no limit. */
  readonly maxParallelImagePulls?: number | undefined
  /** Pulls a second, with bursts; 0: no limit. */
  readonly registryPullQPS: number
  readonly registryBurst: number
  /** Whether pods must show credentials for images that are on the node already. */
  readonly imagePullCredentialsVerificationPolicy: VerificationPolicy
  readonly preloadedImagesVerificationAllowlist: readonly string[]
  /** A CredentialProviderConfig, and where its programs are; empty: none. */
  readonly imageCredentialProviderConfigPath: string
  readonly imageCredentialProviderBinDir: string
  /** Below 0: logs are never rotated. */
  readonly containerLogMaxSizeBytes: number
  readonly containerLogMaxFiles: number
  readonly containerLogMaxWorkers: number
  readonly containerLogMonitorIntervalMs: number
  readonly containerRestartInitialBackOffMs: number
  readonly containerRestartMaxBackOffMs: number
  readonly maxConcurrentPodStarts: number
  readonly enableControllerAttachDetach: boolean
  /** How long the measured disk usage of volumes is cached. */
  readonly volumeStatsAggPeriodMs: number
  /** The range of pod addresses of a node without an API server, which gets none from it. */
  readonly podCIDR: string
  /** A kernel with other settings than a node should have is refused. */
  readonly protectKernelDefaults: boolean
  /** Sysctls and patterns ('kernel.msg*') that pods may set besides the safe ones. */
  readonly allowedUnsafeSysctls: readonly string[]
  /** Containers that name no seccomp profile get the runtime's. */
  readonly seccompDefault: boolean
  /** The kubelet API's port, published in the Node's status. */
  readonly port: number
  /** False: no exec, attach, port-forward, logs, profiles. */
  readonly enableDebuggingHandlers: boolean
  readonly enableSystemLogHandler: boolean
  readonly enableSystemLogQuery: boolean
  readonly enableProfilingHandler: boolean
  readonly enableDebugFlagsHandler: boolean
  /** A directory of static pod manifests; empty: none. */
  readonly staticPodPath: string
  /** A Pod or PodList of static pods behind a URL; empty: none. */
  readonly staticPodURL: string
  /** Header → values for requests to that URL. */
  readonly staticPodURLHeader: Readonly<Record<string, readonly string[]>>
  readonly httpCheckFrequencyMs: number
  readonly fileCheckFrequencyMs: number
}

const minuteMs = 60_000

export const kubeletDefaults: KubeletConfig = {
  ...resourcesDefaults,
  nodeName: '',
  nodeIPs: [],
  nodeLabels: {},
  registerWithTaints: [],
  providerID: '',
  registerNode: true,
  rootDirectory: '/var/lib/kubelet',
  podLogsDirectory: '/var/log/pods',
  cgroupRoot: '/',
  clusterDNS: [],
  clusterDomain: 'cluster.local',
  resolvConf: '',
  userNamespaces: {},
  maxPods: 110,
  podsPerCore: 0,
  externalCloudProvider: false,
  cpuCFSQuota: true,
  cpuCFSQuotaPeriodMs: 100,
  nodeStatusUpdateFrequencyMs: 10_000,
  nodeStatusReportFrequencyMs: 5 * minuteMs,
  nodeLeaseDurationSeconds: 40,
  nodeStatusMaxImages: 50,
  shutdownGracePeriodMs: 0,
  shutdownGracePeriodCriticalPodsMs: 0,
  shutdownGracePeriodByPodPriority: [],
  syncFrequencyMs: minuteMs,
  relistPeriodMs: 10_000,
  evictionHard: {
    'memory.available': '100Mi',
    'nodefs.available': '10%',
    'nodefs.inodesFree': '5%',
    'imagefs.available': '15%',
    'imagefs.inodesFree': '5%',
  },
  evictionSoft: {},
  evictionSoftGracePeriod: {},
  evictionMinimumReclaim: {},
  evictionPressureTransitionPeriodMs: 5 * minuteMs,
  evictionMaxPodGracePeriod: 0,
  mergeDefaultEvictionSettings: false,
  localStorageCapacityIsolation: true,
  imageMinimumGCAgeMs: 2 * minuteMs,
  imageMaximumGCAgeMs: 0,
  imageGCHighThresholdPercent: 85,
  imageGCLowThresholdPercent: 80,
  imageGCPeriodMs: 5 * minuteMs,
  containerGCPeriodMs: minuteMs,
  serializeImagePulls: true,
  maxParallelImagePulls: undefined,
  registryPullQPS: 5,
  registryBurst: 10,
  imagePullCredentialsVerificationPolicy: 'NeverVerifyPreloadedImages',
  preloadedImagesVerificationAllowlist: [],
  imageCredentialProviderConfigPath: '',
  imageCredentialProviderBinDir: '',
  containerLogMaxSizeBytes: 10 * 2 ** 20,
  containerLogMaxFiles: 5,
  containerLogMaxWorkers: 1,
  containerLogMonitorIntervalMs: 10_000,
  containerRestartInitialBackOffMs: 10_000,
  containerRestartMaxBackOffMs: 5 * minuteMs,
  maxConcurrentPodStarts: 4,
  enableControllerAttachDetach: true,
  volumeStatsAggPeriodMs: minuteMs,
  podCIDR: '',
  protectKernelDefaults: false,
  allowedUnsafeSysctls: [],
  seccompDefault: false,
  port: 10_250,
  enableDebuggingHandlers: true,
  enableSystemLogHandler: true,
  enableSystemLogQuery: false,
  enableProfilingHandler: true,
  enableDebugFlagsHandler: true,
  staticPodPath: '',
  staticPodURL: '',
  staticPodURLHeader: {},
  httpCheckFrequencyMs: 20_000,
  fileCheckFrequencyMs: 20_000,
}

/** Fills in upstream's defaults. */
export function kubeletConfig(config: Partial<KubeletConfig> & Pick<KubeletConfig, 'nodeName'>): KubeletConfig {
  const merged = config.mergeDefaultEvictionSettings ? { evictionHard: { ...kubeletDefaults.evictionHard, ...config.evictionHard } } : {}
  return { ...kubeletDefaults, ...config, ...merged }
}
