/**
 * Every field of KubeletConfiguration v1beta1 (L3, pure): its type, its default, and the flag of the same meaning. Upstream:
 * k8s.io/kubelet/config/v1beta1/types.go, kubelet/apis/config/v1beta1/defaults.go, cmd/kubelet/app/options/options.go (v1.36).
 */
import { bareMap } from '#base/bareMap'

export type FieldType = 'boolean' | 'integer' | 'number' | 'duration' | 'string' | 'list' | 'map' | 'gates' | 'object' | 'objects' | 'integers'

export interface ConfigurationField {
  readonly type: FieldType
  /** As written in the file; absent: none, and the field is not there. */
  readonly default?: unknown
  /** Without its dashes. */
  readonly flag?: string | undefined
}

const field = (type: FieldType, byDefault?: unknown, flag?: string): ConfigurationField => ({ type, default: byDefault, flag })

const serving = {
  enableServer: field('boolean', true, 'enable-server'),
  address: field('string', '0.0.0.0', 'address'),
  port: field('integer', 10_250, 'port'),
  readOnlyPort: field('integer', undefined, 'read-only-port'),
  tlsCertFile: field('string', undefined, 'tls-cert-file'),
  tlsPrivateKeyFile: field('string', undefined, 'tls-private-key-file'),
  tlsCipherSuites: field('list', undefined, 'tls-cipher-suites'),
  tlsMinVersion: field('string', undefined, 'tls-min-version'),
  tlsCurvePreferences: field('integers', undefined, 'tls-curve-preferences'),
  rotateCertificates: field('boolean', undefined, 'rotate-certificates'),
  serverTLSBootstrap: field('boolean', undefined, 'rotate-server-certificates'),
  authentication: field('object'),
  authorization: field('object'),
  enableDebuggingHandlers: field('boolean', true, 'enable-debugging-handlers'),
  enableContentionProfiling: field('boolean', undefined, 'contention-profiling'),
  enableProfilingHandler: field('boolean', true),
  enableDebugFlagsHandler: field('boolean', true),
  enableSystemLogHandler: field('boolean', true),
  enableSystemLogQuery: field('boolean'),
  healthzPort: field('integer', 10_248, 'healthz-port'),
  healthzBindAddress: field('string', '127.0.0.1', 'healthz-bind-address'),
  streamingConnectionIdleTimeout: field('duration', '4h0m0s', 'streaming-connection-idle-timeout'),
  showHiddenMetricsForVersion: field('string', undefined, 'show-hidden-metrics-for-version'),
  logging: field('object'),
  tracing: field('object'),
} as const

const cluster = {
  registerNode: field('boolean', true, 'register-node'),
  registerWithTaints: field('objects'),
  providerID: field('string', undefined, 'provider-id'),
  clusterDomain: field('string', undefined, 'cluster-domain'),
  clusterDNS: field('list', undefined, 'cluster-dns'),
  podCIDR: field('string', undefined, 'pod-cidr'),
  staticPodPath: field('string', undefined, 'pod-manifest-path'),
  staticPodURL: field('string', undefined, 'manifest-url'),
  staticPodURLHeader: field('object'),
  syncFrequency: field('duration', '1m0s', 'sync-frequency'),
  fileCheckFrequency: field('duration', '20s', 'file-check-frequency'),
  httpCheckFrequency: field('duration', '20s', 'http-check-frequency'),
  nodeStatusUpdateFrequency: field('duration', '10s', 'node-status-update-frequency'),
  // Upstream has no flag for it.
  nodeStatusReportFrequency: field('duration', '5m0s', 'node-status-report-frequency'),
  nodeLeaseDurationSeconds: field('integer', 40),
  nodeStatusMaxImages: field('integer', 50, 'node-status-max-images'),
  eventRecordQPS: field('integer', 50, 'event-qps'),
  eventBurst: field('integer', 100, 'event-burst'),
  contentType: field('string', 'application/vnd.kubernetes.protobuf', 'kube-api-content-type'),
  kubeAPIQPS: field('integer', 50, 'kube-api-qps'),
  kubeAPIBurst: field('integer', 100, 'kube-api-burst'),
  configMapAndSecretChangeDetectionStrategy: field('string', 'Watch'),
  featureGates: field('gates', undefined, 'feature-gates'),
} as const

const pods = {
  maxPods: field('integer', 110, 'max-pods'),
  podsPerCore: field('integer', undefined, 'pods-per-core'),
  podPidsLimit: field('integer', -1, 'pod-max-pids'),
  podLogsDir: field('string', '/var/log/pods'),
  resolvConf: field('string', '/etc/resolv.conf', 'resolv-conf'),
  cpuCFSQuota: field('boolean', true, 'cpu-cfs-quota'),
  cpuCFSQuotaPeriod: field('duration', '100ms', 'cpu-cfs-quota-period'),
  seccompDefault: field('boolean', false, 'seccomp-default'),
  allowedUnsafeSysctls: field('list', undefined, 'allowed-unsafe-sysctls'),
  hairpinMode: field('string', 'promiscuous-bridge', 'hairpin-mode'),
  containerLogMaxSize: field('string', '10Mi', 'container-log-max-size'),
  containerLogMaxFiles: field('integer', 5, 'container-log-max-files'),
  containerLogMaxWorkers: field('integer', 1),
  containerLogMonitorInterval: field('duration', '10s'),
  crashLoopBackOff: field('object', {}),
  shutdownGracePeriod: field('duration', '0s'),
  shutdownGracePeriodCriticalPods: field('duration', '0s'),
  shutdownGracePeriodByPodPriority: field('objects'),
  userNamespaces: field('object'),
  containerRuntimeEndpoint: field('string', 'unix:///run/containerd/containerd.sock', 'container-runtime-endpoint'),
  imageServiceEndpoint: field('string', undefined, 'image-service-endpoint'),
  runtimeRequestTimeout: field('duration', '2m0s', 'runtime-request-timeout'),
  runOnce: field('boolean', undefined, 'runonce'),
} as const

const images = {
  registryPullQPS: field('integer', 5, 'registry-qps'),
  registryBurst: field('integer', 10, 'registry-burst'),
  serializeImagePulls: field('boolean', true, 'serialize-image-pulls'),
  maxParallelImagePulls: field('integer'),
  imagePullCredentialsVerificationPolicy: field('string', 'NeverVerifyPreloadedImages'),
  preloadedImagesVerificationAllowlist: field('list'),
  imageMinimumGCAge: field('duration', '2m0s', 'minimum-image-ttl-duration'),
  imageMaximumGCAge: field('duration', '0s'),
  imageGCHighThresholdPercent: field('integer', 85, 'image-gc-high-threshold'),
  imageGCLowThresholdPercent: field('integer', 80, 'image-gc-low-threshold'),
} as const

const eviction = {
  evictionHard: field('map', undefined, 'eviction-hard'),
  evictionSoft: field('map', undefined, 'eviction-soft'),
  evictionSoftGracePeriod: field('map', undefined, 'eviction-soft-grace-period'),
  evictionPressureTransitionPeriod: field('duration', '5m0s', 'eviction-pressure-transition-period'),
  evictionMaxPodGracePeriod: field('integer', undefined, 'eviction-max-pod-grace-period'),
  evictionMinimumReclaim: field('map', undefined, 'eviction-minimum-reclaim'),
  mergeDefaultEvictionSettings: field('boolean', false),
  kernelMemcgNotification: field('boolean', undefined, 'kernel-memcg-notification'),
  localStorageCapacityIsolation: field('boolean', true, 'local-storage-capacity-isolation'),
} as const

const resources = {
  kubeletCgroups: field('string', undefined, 'kubelet-cgroups'),
  systemCgroups: field('string', undefined, 'system-cgroups'),
  cgroupRoot: field('string', undefined, 'cgroup-root'),
  cgroupsPerQOS: field('boolean', true, 'cgroups-per-qos'),
  cgroupDriver: field('string', 'cgroupfs', 'cgroup-driver'),
  failCgroupV1: field('boolean', false, 'fail-cgroupv1'),
  singleProcessOOMKill: field('boolean'),
  cpuManagerPolicy: field('string', 'none', 'cpu-manager-policy'),
  cpuManagerPolicyOptions: field('map', undefined, 'cpu-manager-policy-options'),
  cpuManagerReconcilePeriod: field('duration', '10s', 'cpu-manager-reconcile-period'),
  memoryManagerPolicy: field('string', 'None', 'memory-manager-policy'),
  reservedMemory: field('objects'),
  topologyManagerPolicy: field('string', 'none', 'topology-manager-policy'),
  topologyManagerScope: field('string', 'container', 'topology-manager-scope'),
  topologyManagerPolicyOptions: field('map', undefined, 'topology-manager-policy-options'),
  qosReserved: field('map', undefined, 'qos-reserved'),
  systemReserved: field('map', undefined, 'system-reserved'),
  kubeReserved: field('map', undefined, 'kube-reserved'),
  reservedSystemCPUs: field('string', undefined, 'reserved-cpus'),
  systemReservedCgroup: field('string', undefined, 'system-reserved-cgroup'),
  kubeReservedCgroup: field('string', undefined, 'kube-reserved-cgroup'),
  enforceNodeAllocatable: field('list', ['pods'], 'enforce-node-allocatable'),
  memoryThrottlingFactor: field('number', 0.9),
  memoryReservationPolicy: field('string', 'None'),
  memorySwap: field('object', {}),
  failSwapOn: field('boolean', true, 'fail-swap-on'),
  oomScoreAdj: field('integer', -999, 'oom-score-adj'),
  maxOpenFiles: field('integer', 1_000_000, 'max-open-files'),
  protectKernelDefaults: field('boolean', undefined, 'protect-kernel-defaults'),
} as const

const network = {
  makeIPTablesUtilChains: field('boolean', true, 'make-iptables-util-chains'),
  iptablesMasqueradeBit: field('integer', 14, 'iptables-masquerade-bit'),
  iptablesDropBit: field('integer', 15, 'iptables-drop-bit'),
} as const

const volumes = {
  enableControllerAttachDetach: field('boolean', true, 'enable-controller-attach-detach'),
  volumePluginDir: field('string', '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/', 'volume-plugin-dir'),
  volumeStatsAggPeriod: field('duration', '1m0s', 'volume-stats-agg-period'),
} as const

export const configurationFields: Readonly<Record<string, ConfigurationField>> = bareMap({
  ...serving,
  ...cluster,
  ...pods,
  ...images,
  ...eviction,
  ...resources,
  ...network,
  ...volumes,
})

export const configurationApiVersion = 'kubelet.config.k8s.io/v1beta1'
export const configurationKind = 'KubeletConfiguration'
