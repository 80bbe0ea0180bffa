/** All controllers, in the order in which they start (L3). */
import { type AttachDetachOptions, attachDetach } from './attachDetach/attachDetach.ts'
import { bootstrapSigner } from './bootstrap/signer.ts'
import { tokenCleaner } from './bootstrap/tokenCleaner.ts'
import { certificateApproving } from './certificates/approving.ts'
import { certificateCleaner } from './certificates/cleaner.ts'
import { podCertificateCleaner } from './certificates/podCertificateCleaner.ts'
import { certificateSigning, type SigningOptions } from './certificates/signing.ts'
import { trustBundlePublisher } from './certificates/trustBundlePublisher.ts'
import { clusterRoleAggregation } from './clusterRoleAggregation.ts'
import { cronJob } from './cronJob/cronJob.ts'
import { daemonSet } from './daemonSet/daemonSet.ts'
import { deployment } from './deployment/deployment.ts'
import { deviceTaintEviction } from './deviceTaintEviction/deviceTaintEviction.ts'
import { disruption } from './disruption/disruption.ts'
import { type EndpointSliceOptions, endpointSlice } from './endpointSlice/endpointSlice.ts'
import { endpointSliceMirroring, type MirroringOptions } from './endpointSlice/mirroring.ts'
import { type EndpointsOptions, endpoints } from './endpoints.ts'
import { ephemeralVolume } from './ephemeralVolume.ts'
import type { ControllerDescriptor, WorkerOptions } from './framework/controller.ts'
import { garbageCollector } from './garbageCollector/garbageCollector.ts'
import { type AutoscalerOptions, autoscalerFeatures, horizontalPodAutoscaler } from './horizontalPodAutoscaler/horizontalPodAutoscaler.ts'
import { job } from './job/job.ts'
import { localPathProvisioner } from './localPath/localPathProvisioner.ts'
import { type NamespaceOptions, namespace } from './namespace.ts'
import { type NodeIpamOptions, nodeIpam } from './node/ipam.ts'
import { type NodeLifecycleOptions, nodeLifecycle } from './node/lifecycle.ts'
import { taintEviction } from './node/taintEviction.ts'
import { ttl } from './node/ttl.ts'
import type { BinderOptions } from './persistentVolumeBinder/options.ts'
import { persistentVolumeBinder } from './persistentVolumeBinder/persistentVolumeBinder.ts'
import { persistentVolumeClaimProtection } from './persistentVolumeClaimProtection.ts'
import { persistentVolumeExpander } from './persistentVolumeExpander.ts'
import { persistentVolumeProtection } from './persistentVolumeProtection.ts'
import { type PodGcOptions, podGc } from './podGc.ts'
import { replicaSet } from './replicaSet/replicaSet.ts'
import { replicationController } from './replicationController.ts'
import { resourceClaim } from './resourceClaim/resourceClaim.ts'
import { type ResourceQuotaOptions, resourceQuota } from './resourceQuota.ts'
import { type RootCaPublisherOptions, rootCaCertificatePublisher } from './rootCaCertificatePublisher.ts'
import { serviceAccount } from './serviceAccount.ts'
import { type LegacyCleanerOptions, legacyTokenCleaner } from './serviceAccountTokens/legacyCleaner.ts'
import { serviceAccountTokens, type TokensOptions } from './serviceAccountTokens/tokens.ts'
import { serviceCidr } from './serviceCidr.ts'
import { serviceLoadBalancer } from './serviceLoadBalancer/serviceLoadBalancer.ts'
import { type StatefulSetOptions, statefulSet, statefulSetFeatures } from './statefulSet/statefulSet.ts'
import { storageVersionMigrator } from './storageVersionMigrator/storageVersionMigrator.ts'
import { ttlAfterFinished } from './ttlAfterFinished.ts'
import { validatingAdmissionPolicyStatus } from './validatingAdmissionPolicyStatus/validatingAdmissionPolicyStatus.ts'
import { volumeAttributesClassProtection } from './volumeAttributesClassProtection.ts'

/** The options of all controllers together; each controller's file declares its own. */
export type ControllerOptions = WorkerOptions &
  SigningOptions &
  LegacyCleanerOptions &
  TokensOptions &
  RootCaPublisherOptions &
  StatefulSetOptions &
  PodGcOptions &
  ResourceQuotaOptions &
  EndpointsOptions &
  EndpointSliceOptions &
  MirroringOptions &
  AttachDetachOptions &
  NamespaceOptions &
  NodeLifecycleOptions &
  NodeIpamOptions &
  BinderOptions &
  AutoscalerOptions

/** Feature gates that controllers read. */
export const turnableFeatures = [
  ...statefulSetFeatures,
  ...autoscalerFeatures,
  'ClusterTrustBundle',
  'PodCertificateRequest',
  'StorageVersionMigrator',
] as const

export const controllers: readonly ControllerDescriptor<ControllerOptions>[] = [
  // Others wait for their tokens.
  serviceAccountTokens,
  serviceAccount,
  rootCaCertificatePublisher,
  clusterRoleAggregation,
  namespace,
  resourceQuota,
  nodeIpam,
  replicationController,
  replicaSet,
  deployment,
  statefulSet,
  daemonSet,
  job,
  cronJob,
  ttlAfterFinished,
  horizontalPodAutoscaler,
  disruption,
  endpointSlice,
  endpointSliceMirroring,
  endpoints,
  serviceCidr,
  serviceLoadBalancer,
  nodeLifecycle,
  taintEviction,
  deviceTaintEviction,
  ttl,
  persistentVolumeBinder,
  localPathProvisioner,
  attachDetach,
  persistentVolumeExpander,
  ephemeralVolume,
  persistentVolumeClaimProtection,
  persistentVolumeProtection,
  volumeAttributesClassProtection,
  garbageCollector,
  podGc,
  resourceClaim,
  validatingAdmissionPolicyStatus,
  storageVersionMigrator,
  certificateApproving,
  certificateSigning,
  certificateCleaner,
  podCertificateCleaner,
  trustBundlePublisher,
  bootstrapSigner,
  tokenCleaner,
  legacyTokenCleaner,
]
