/**
 * The feature gates of Kubernetes v1.36 (L0): which names there are, whether each is on, and whether that can be changed.
 * Every component takes all of them, as upstream's do. Upstream: pkg/features/kube_features.go, the features of apiserver, apiextensions-apiserver,
 * client-go and component-base v0.36.3, component-base/featuregate.
 */
import type { Logger } from './log.ts'
import type { Metrics } from './metrics.ts'
import { kubernetesVersion } from './version.ts'

/** As the metric names them; a stable feature has none. */
export type FeatureStage = 'ALPHA' | 'BETA' | '' | 'DEPRECATED'

export interface FeatureGate {
  readonly stage: FeatureStage
  readonly default: boolean
  /** It stays as it is by default. */
  readonly locked: boolean
}

/** The requested settings by name: `AllAlpha` and `AllBeta` set all gates of their stage that are not named. */
export type FeatureGateSettings = Readonly<Record<string, boolean>>

const named = (names: string) => names.trim().split(/\s+/)

const alpha = named(`
  AllowUnsafeMalformedObjectDeletion APIServingWithRoutine CBORServingAndStorage ClientsAllowCBOR ClientsPreferCBOR
  CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ContainerStopSignals
  ControllerManagerReleaseLeaderElectionLockOnExit CPUManagerPolicyAlphaOptions CRIListStreaming CrossNamespaceVolumeDataSource CSIVolumeHealth
  DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload
  HPAScaleToZero ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace
  LoggingAlphaOptions ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms PersistentVolumeClaimUnusedSinceTime
  PodAndContainerStatsFromCRI PodLevelResourceManagers PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay
  RuntimeClassInImageCriApi ShardedListAndWatch StorageCapacityScoring StorageVersionAPI TaintTolerationComparisonOperators
  TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport VolumeLimitScaling WindowsCPUAndMemoryAffinity
  WorkloadAwarePreemption WorkloadWithJob`)

const betaOn = named(`
  AllowParsingUserUIDFromCertAuth APIResponseCompression APIServerIdentity AtomicFIFO AuthorizePodWebsocketUpgradeCreatePermission
  ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz ConstrainedImpersonation
  ContainerCheckpoint ContainerRestartRules ContextualLogging CPUManagerPolicyBetaOptions CRDObservedGenerationTracking DeclarativeValidationBeta
  DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency DisableCPUQuotaWithExclusiveCPUs DRAConsumableCapacity
  DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices DRAResourceClaimDeviceStatus
  DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout EnvFiles ExtendWebSocketsToKubelet GracefulNodeShutdown
  GracefulNodeShutdownBasedOnPodPriority HostnameOverride HPAConfigurableTolerance InOrderInformersBatchProcess
  InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
  KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions MatchLabelKeysInPodTopologySpread
  MatchLabelKeysInPodTopologySpreadSelectorMerge MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
  NodeDeclaredFeatures NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist PodDeletionCost PodLevelResources
  PodReadyToStartContainersCondition PodTopologyLabelsAdmission PortForwardWebsockets PreventStaticPodAPIReferences RelaxedServiceNameValidation
  ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
  RestartAllContainersOnContainerExits RotateKubeletServerCertificate SchedulerAsyncPreemption SchedulerPopFromBackoffQ
  ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
  StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageVersionHash
  StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
  TokenRequestServiceAccountUIDValidation TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
  UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList WatchListClient
  WindowsGracefulNodeShutdown`)

const betaOff = named(`
  ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode CoordinatedLeaderElection DRADeviceTaintRules
  LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet PodCertificateRequest SchedulerAsyncAPICalls SELinuxMount
  StorageVersionMigrator`)

const stable = named(`
  AnonymousAuthConfigurableEndpoints AnyVolumeDataSource APIServerTracing AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache
  ConsistentListFromCache CPUManagerPolicyOptions CRDValidationRatcheting CSIServiceAccountTokenSecrets CustomCPUCFSQuotaPeriod
  CustomResourceFieldSelectors DeclarativeValidation DisableAllocatorDualWrite DRAAdminAccess DRAPrioritizedList DynamicResourceAllocation
  ExecProbeTimeout ExternalServiceAccountTokenSigner HonorPVReclaimPolicy ImageMaximumGCAge ImageVolume InOrderInformers InPlacePodVerticalScaling
  JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz
  KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletPSI KubeletTracing LogarithmicScaleDown MatchLabelKeysInPodAffinity
  MultiCIDRServiceAllocator MutableCSINodeAllocatableCount NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap
  OrderedNamespaceDeletion PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking PodSchedulingReadiness
  PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure RecursiveReadOnlyMounts RelaxedDNSSearchValidation
  RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization RetryGenerateName SchedulerQueueingHints SELinuxChangePolicy
  SELinuxMountReadWriteOncePod SeparateTaintEvictionController ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
  ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers StreamingCollectionEncodingToJSON
  StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions
  UserNamespacesSupport VolumeAttributesClass WinDSR WinOverlay`)

const stableUnlocked = named('InformerResourceVersion MutatingAdmissionPolicy')

const deprecatedOn = named('DisableNodeKubeProxyVersion KubeletPodResourcesListUseActivePods StorageNamespaceIndex')
const deprecatedOff = named(`
  AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart DeclarativeValidationTakeover
  InPlacePodVerticalScalingAllocatedStatus KMSv1 KubeletRegistrationGetOnExistsOnly WindowsHostNetwork`)
const deprecatedLockedOff = named('AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC')

const all = (names: readonly string[], stage: FeatureStage, byDefault: boolean, locked = false) =>
  names.map((name): [string, FeatureGate] => [name, { stage, default: byDefault, locked }])

/** By name, in the alphabet's order. */
export const featureGates: ReadonlyMap<string, FeatureGate> = new Map(
  [
    ...all([...alpha, 'AllAlpha'], 'ALPHA', false),
    ...all(betaOn, 'BETA', true),
    ...all([...betaOff, 'AllBeta'], 'BETA', false),
    ...all(stable, '', true, true),
    ...all(stableUnlocked, '', true),
    ...all(['AggregatedDiscoveryRemoveBetaType'], 'DEPRECATED', true, true),
    ...all(deprecatedOn, 'DEPRECATED', true),
    ...all(deprecatedOff, 'DEPRECATED', false),
    ...all(deprecatedLockedOff, 'DEPRECATED', false, true),
  ].sort(([a], [b]) => (a < b ? -1 : 1)),
)

/** What a feature that is on needs to be on as well, where any of the two can be turned. */
const dependencies: Readonly<Record<string, readonly string[]>> = {
  ClusterTrustBundleProjection: ['ClusterTrustBundle'],
  DRADeviceBindingConditions: ['DRAResourceClaimDeviceStatus'],
  DRADeviceTaintRules: ['DRADeviceTaints'],
  GangScheduling: ['GenericWorkload'],
  GracefulNodeShutdownBasedOnPodPriority: ['GracefulNodeShutdown'],
  InPlacePodLevelResourcesVerticalScaling: ['NodeDeclaredFeatures', 'PodLevelResources'],
  MatchLabelKeysInPodTopologySpreadSelectorMerge: ['MatchLabelKeysInPodTopologySpread'],
  ResourceHealthStatusMessage: ['ResourceHealthStatus'],
  RestartAllContainersOnContainerExits: ['ContainerRestartRules', 'NodeDeclaredFeatures'],
  StorageVersionAPI: ['APIServerIdentity'],
  UnknownVersionInteroperabilityProxy: ['APIServerIdentity'],
  WindowsGracefulNodeShutdown: ['GracefulNodeShutdown'],
}

/** Whether a feature is on with these settings; one that v1.36 does not know is off. */
export function featureEnabled(settings: FeatureGateSettings, name: string): boolean {
  const gate = featureGates.get(name)
  if (!gate) return false
  const together = { ALPHA: settings.AllAlpha, BETA: settings.AllBeta, '': undefined, DEPRECATED: undefined }
  return settings[name] ?? together[gate.stage] ?? gate.default
}

/** The faults of settings, in upstream's words; empty when there are none. */
export function featureGateFaults(settings: FeatureGateSettings): string[] {
  const faults = Object.entries(settings).flatMap(([name, value]) => {
    const gate = featureGates.get(name)
    if (!gate) return [`unrecognized feature gate: ${name}`]
    return gate.locked && gate.default !== value ? [`cannot set feature gate ${name} to ${value}, feature is locked to ${gate.default}`] : []
  })
  if (faults.length > 0) return faults
  return Object.entries(dependencies).flatMap(([name, needed]) => {
    const off = needed.filter((one) => !featureEnabled(settings, one))
    return featureEnabled(settings, name) && off.length > 0 ? [`${name} is enabled, but depends on features that are disabled: [${off.join(' ')}]`] : []
  })
}

/** The log lines for gates that were set: deprecated or removed features, and features whose gate has no effect here. `followed`: gates that do have one. */
export function featureGateWarnings(settings: FeatureGateSettings, followed: readonly string[] = []): string[] {
  const leaving = Object.entries(settings).flatMap(([name, value]) => {
    const kind = { ALPHA: '', BETA: '', '': 'GA', DEPRECATED: 'deprecated' }[featureGates.get(name)?.stage ?? 'ALPHA']
    return kind === '' ? [] : [`Warning: setting ${kind} feature gate ${name}=${value}. It will be removed in a future release.`]
  })
  const fixed = [...featureGates].flatMap(([name, gate]) => {
    const wanted = featureEnabled(settings, name)
    const asksForMany = name === 'AllAlpha' || name === 'AllBeta'
    return wanted === gate.default || asksForMany || followed.includes(name) ? [] : [`${name}=${wanted}`]
  })
  return fixed.length === 0
    ? leaving
    : [...leaving, `Feature gates without effect here, these features stay as v${kubernetesVersion} has them by default: ${fixed.join(', ')}`]
}

/**
 * Writes the resulting settings to the log and the metrics.
 * @param followed features that this component can turn; undefined: none
 */
export function announceFeatures(
  { log, metrics }: { readonly log: Logger; readonly metrics: Metrics },
  settings: FeatureGateSettings,
  followed?: readonly string[],
): void {
  for (const warning of featureGateWarnings(settings, followed)) log.warn(warning)
  const enabled = metrics.gauge({
    name: 'kubernetes_feature_enabled',
    help: 'Which features of Kubernetes there are, at which stage, and whether each is on.',
    labels: ['name', 'stage'],
  })
  for (const [name, { stage }] of featureGates) enabled.set(featureEnabled(settings, name) ? 1 : 0, { name, stage })
}
