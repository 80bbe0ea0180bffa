/** Every group of behaviours that needs containers, by SIG. A group is one file and one line here. */
import { controllerRevision, daemonSet } from './apps/daemonSet.ts'
import { deployment } from './apps/deployment.ts'
import { disruption } from './apps/disruption.ts'
import { cronJob, job } from './apps/job.ts'
import { replicaSetGroup, replicationController } from './apps/replicaSet.ts'
import { statefulSet } from './apps/statefulSet.ts'
import type { BehaviourGroup } from './behaviour.ts'
import { imageVolumes } from './more/imageVolumes.ts'
import { persistentVolumesGroup } from './more/persistentVolumes.ts'
import { volumesGroup } from './more/volumes.ts'
import { configEnv } from './node/configEnv.ts'
import { downwardApiEnv } from './node/downwardApiEnv.ts'
import { entrypoint } from './node/entrypoint.ts'
import { ephemeralContainers } from './node/ephemeralContainers.ts'
import { imageVolume } from './node/imageVolume.ts'
import { initContainers } from './node/initContainers.ts'
import { kubeletBasics } from './node/kubeletBasics.ts'
import { noExecuteTaints } from './node/noExecuteTaints.ts'
import { podGeneration } from './node/podGeneration.ts'
import { podsGroup } from './node/pods.ts'
import { probes } from './node/probes.ts'
import { resize } from './node/resize.ts'
import { runtimeClass } from './node/runtimeClass.ts'
import { securityContext } from './node/securityContext.ts'
import { sysctls } from './node/sysctls.ts'
import { termination } from './node/termination.ts'
import { variableExpansion } from './node/variableExpansion.ts'
import { clusterShape, podAccounts } from './other/cluster.ts'
import { dnsFiles } from './other/dnsFiles.ts'
import { podEndpoints } from './other/endpoints.ts'
import { garbageCollection } from './other/garbageCollection.ts'
import { kubectlWithPods } from './other/kubectl.ts'
import { namespaceEnds } from './other/namespaces.ts'
import { predicates, preemption } from './other/scheduling.ts'
import { configMapVolume } from './storage/configMapVolume.ts'
import { downwardApiVolume, projectedDownwardApi } from './storage/downwardApiVolume.ts'
import { emptyDir } from './storage/emptyDir.ts'
import { projectedCombined, projectedConfigMap, projectedSecret } from './storage/projected.ts'
import { secretVolume } from './storage/secretVolume.ts'
import { subPath } from './storage/subPath.ts'
import { wrapperVolumes } from './storage/wrapperVolumes.ts'

export const nodeBehaviours: readonly BehaviourGroup[] = [
  configEnv,
  downwardApiEnv,
  entrypoint,
  ephemeralContainers,
  imageVolume,
  initContainers,
  kubeletBasics,
  noExecuteTaints,
  podGeneration,
  podsGroup,
  probes,
  resize,
  runtimeClass,
  securityContext,
  sysctls,
  termination,
  variableExpansion,
]

export const storageBehaviours: readonly BehaviourGroup[] = [
  configMapVolume,
  downwardApiVolume,
  emptyDir,
  wrapperVolumes,
  projectedCombined,
  projectedConfigMap,
  projectedDownwardApi,
  projectedSecret,
  secretVolume,
  subPath,
]

export const appsBehaviours: readonly BehaviourGroup[] = [
  controllerRevision,
  cronJob,
  daemonSet,
  deployment,
  disruption,
  job,
  replicaSetGroup,
  replicationController,
  statefulSet,
]

/** sig-api-machinery, sig-architecture, sig-auth, sig-cli, sig-network, sig-scheduling. */
export const otherBehaviours: readonly BehaviourGroup[] = [
  garbageCollection,
  namespaceEnds,
  clusterShape,
  podAccounts,
  kubectlWithPods,
  dnsFiles,
  podEndpoints,
  predicates,
  preemption,
]

export const allBehaviours: readonly BehaviourGroup[] = [...nodeBehaviours, ...storageBehaviours, ...appsBehaviours, ...otherBehaviours]

/** What users rely on and upstream's conformance suite does not ask. */
export const moreBehaviours: readonly BehaviourGroup[] = [imageVolumes, persistentVolumesGroup, volumesGroup]
