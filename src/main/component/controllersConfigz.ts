/**
 * What /configz says of each controller (L5, pure), in upstream's words. Upstream: pkg/controller/apis/config/types.go KubeControllerManagerConfiguration
 * and the config/types.go of each controller (v1.36).
 */
import type { ControllerOptions } from '#controllers/index'

export function controllersConfigz(options: ControllerOptions): object {
  const { concurrentSyncs = {}, nodeEviction, endpoints, attaching, volumeBinding } = options
  const syncs = (controller: string) => concurrentSyncs[controller]
  return {
    attachDetachController: {
      disableAttachDetachReconcilerSync: attaching?.syncPeriodMs === 0,
      reconcilerSyncLoopPeriodMs: attaching?.syncPeriodMs || undefined,
      disableForceDetachOnTimeout: attaching?.neverForce,
    },
    cronJobController: { concurrentCronJobSyncs: syncs('cronjob-controller') },
    daemonSetController: { concurrentDaemonSetSyncs: syncs('daemonset-controller') },
    deploymentController: { concurrentDeploymentSyncs: syncs('deployment-controller') },
    endpointController: { concurrentEndpointSyncs: syncs('endpoints-controller'), endpointUpdatesBatchPeriodMs: endpoints?.batchMs },
    endpointSliceController: {
      concurrentServiceEndpointSyncs: syncs('endpointslice-controller'),
      maxEndpointsPerSlice: endpoints?.maxPerSlice,
      endpointUpdatesBatchPeriodMs: endpoints?.sliceBatchMs,
    },
    endpointSliceMirroringController: {
      mirroringConcurrentServiceEndpointSyncs: syncs('endpointslice-mirroring-controller'),
      mirroringMaxEndpointsPerSubset: endpoints?.maxPerSubset,
      mirroringEndpointUpdatesBatchPeriodMs: endpoints?.mirrorBatchMs,
    },
    ephemeralVolumeController: { concurrentEphemeralVolumeSyncs: syncs('ephemeral-volume-controller') },
    garbageCollectorController: { concurrentGCSyncs: syncs('garbage-collector-controller') },
    jobController: { concurrentJobSyncs: syncs('job-controller') },
    legacySATokenCleaner: { cleanUpPeriodMs: options.legacyTokenCleanUpPeriodMs },
    namespaceController: { concurrentNamespaceSyncs: syncs('namespace-controller'), namespaceSyncPeriodMs: options.namespaceSyncPeriodMs },
    nodeIPAMController: { serviceCIDR: options.serviceCidr ?? '', nodeCIDRMaskSize: options.nodeCidrMaskSize ?? 0 },
    nodeLifecycleController: {
      nodeEvictionRate: nodeEviction?.evictionRate,
      secondaryNodeEvictionRate: nodeEviction?.secondaryEvictionRate,
      nodeStartupGracePeriodMs: options.nodeStartupGracePeriodMs,
      nodeMonitorGracePeriodMs: options.nodeMonitorGracePeriodMs,
      largeClusterSizeThreshold: nodeEviction?.largeClusterSizeThreshold,
      unhealthyZoneThreshold: nodeEviction?.unhealthyZoneThreshold,
    },
    persistentVolumeBinderController: {
      pVClaimBinderSyncPeriodMs: volumeBinding?.syncPeriodMs,
      volumeConfiguration: {
        enableHostPathProvisioning: volumeBinding?.provisionHostPaths,
        enableDynamicProvisioning: volumeBinding?.dynamicProvisioning,
        persistentVolumeRecyclerConfiguration: {
          minimumTimeoutNFS: volumeBinding?.recycleNfs?.minimumSeconds,
          incrementTimeoutNFS: volumeBinding?.recycleNfs?.secondsPerGi,
          minimumTimeoutHostPath: volumeBinding?.recycleHostPath?.minimumSeconds,
          incrementTimeoutHostPath: volumeBinding?.recycleHostPath?.secondsPerGi,
        },
      },
    },
    podGCController: { terminatedPodGCThreshold: options.terminatedPodGcThreshold },
    replicaSetController: { concurrentRSSyncs: syncs('replicaset-controller') },
    replicationController: { concurrentRCSyncs: syncs('replicationcontroller-controller') },
    resourceClaimController: { concurrentSyncs: syncs('resourceclaim-controller') },
    resourceQuotaController: {
      concurrentResourceQuotaSyncs: syncs('resourcequota-controller'),
      resourceQuotaSyncPeriodMs: options.resourceQuotaSyncPeriodMs,
    },
    sAController: { concurrentSATokenSyncs: syncs('serviceaccount-token-controller') },
    statefulSetController: { concurrentStatefulSetSyncs: syncs('statefulset-controller') },
    tTLAfterFinishedController: { concurrentTTLSyncs: syncs('ttl-after-finished-controller') },
    validatingAdmissionPolicyStatusController: { concurrentPolicySyncs: syncs('validatingadmissionpolicy-status-controller') },
  }
}
