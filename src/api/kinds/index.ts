/** The list of kinds that have a file of their own (L1), group by group. Adding a kind is one line here. */
import type { KubeObject } from '#api/machinery/meta'
import { mutatingAdmissionPolicy, mutatingAdmissionPolicyBinding } from './admissionregistration/mutatingAdmissionPolicy.ts'
import { validatingAdmissionPolicy, validatingAdmissionPolicyBinding } from './admissionregistration/validatingAdmissionPolicy.ts'
import { mutatingWebhookConfiguration, validatingWebhookConfiguration } from './admissionregistration/webhookConfiguration.ts'
import { customResourceDefinition } from './apiextensions/customResourceDefinition.ts'
import { apiService } from './apiregistration/apiService.ts'
import { storageVersion } from './apiserverinternal/storageVersion.ts'
import { controllerRevision } from './apps/controllerRevision.ts'
import { daemonSet } from './apps/daemonSet.ts'
import { deployment } from './apps/deployment.ts'
import { replicaSet } from './apps/replicaSet.ts'
import { statefulSet } from './apps/statefulSet.ts'
import { horizontalPodAutoscaler } from './autoscaling/horizontalPodAutoscaler.ts'
import { cronJob } from './batch/cronJob.ts'
import { job } from './batch/job.ts'
import { certificateSigningRequest } from './certificates/certificateSigningRequest.ts'
import { clusterTrustBundle } from './certificates/clusterTrustBundle.ts'
import { podCertificateRequest } from './certificates/podCertificateRequest.ts'
import { lease } from './coordination/lease.ts'
import { leaseCandidate } from './coordination/leaseCandidate.ts'
import { componentStatus } from './core/componentStatus.ts'
import { configMap } from './core/configMap.ts'
import { endpoints } from './core/endpoints.ts'
import { coreEvent, event } from './core/event.ts'
import { limitRange } from './core/limitRange.ts'
import { namespace } from './core/namespace.ts'
import { node } from './core/node.ts'
import { persistentVolume } from './core/persistentVolume.ts'
import { persistentVolumeClaim } from './core/persistentVolumeClaim.ts'
import { pod } from './core/pod/pod.ts'
import { podTemplate } from './core/podTemplate.ts'
import { replicationController } from './core/replicationController.ts'
import { resourceQuota } from './core/resourceQuota.ts'
import { secret } from './core/secret.ts'
import { service } from './core/service.ts'
import { serviceAccount } from './core/serviceAccount.ts'
import type { KindStrategy } from './defineKind.ts'
import { endpointSlice } from './discovery/endpointSlice.ts'
import { flowSchema } from './flowcontrol/flowSchema.ts'
import { priorityLevelConfiguration } from './flowcontrol/priorityLevelConfiguration.ts'
import { ingress } from './networking/ingress.ts'
import { ingressClass } from './networking/ingressClass.ts'
import { ipAddress } from './networking/ipAddress.ts'
import { networkPolicy } from './networking/networkPolicy.ts'
import { serviceCidr } from './networking/serviceCidr.ts'
import { runtimeClass } from './node/runtimeClass.ts'
import { podDisruptionBudget } from './policy/podDisruptionBudget.ts'
import { clusterRole, role } from './rbac/role.ts'
import { clusterRoleBinding, roleBinding } from './rbac/roleBinding.ts'
import { deviceClass } from './resource/deviceClass.ts'
import { deviceTaintRule } from './resource/deviceTaintRule.ts'
import { resourceClaim, resourceClaimTemplate, resourcePoolStatusRequest } from './resource/resourceClaim.ts'
import { resourceSlice } from './resource/resourceSlice.ts'
import { podGroup, workload } from './scheduling/podGroup.ts'
import { priorityClass } from './scheduling/priorityClass.ts'
import { csiDriver } from './storage/csiDriver.ts'
import { csiNode } from './storage/csiNode.ts'
import { csiStorageCapacity } from './storage/csiStorageCapacity.ts'
import { storageClass } from './storage/storageClass.ts'
import { volumeAttachment } from './storage/volumeAttachment.ts'
import { volumeAttributesClass } from './storage/volumeAttributesClass.ts'
import { storageVersionMigration } from './storagemigration/storageVersionMigration.ts'

export const strategies: readonly KindStrategy[] = [
  erased(namespace),
  erased(node),
  erased(pod),
  erased(service),
  erased(endpoints),
  erased(serviceAccount),
  erased(secret),
  erased(configMap),
  erased(coreEvent),
  erased(event),
  erased(podTemplate),
  erased(replicationController),
  erased(resourceQuota),
  erased(limitRange),
  erased(persistentVolume),
  erased(persistentVolumeClaim),
  erased(componentStatus),
  erased(deployment),
  erased(replicaSet),
  erased(statefulSet),
  erased(daemonSet),
  erased(controllerRevision),
  erased(job),
  erased(cronJob),
  erased(horizontalPodAutoscaler),
  erased(podDisruptionBudget),
  erased(certificateSigningRequest),
  erased(clusterTrustBundle),
  erased(podCertificateRequest),
  erased(lease),
  erased(leaseCandidate),
  erased(endpointSlice),
  erased(ingress),
  erased(ingressClass),
  erased(networkPolicy),
  erased(serviceCidr),
  erased(ipAddress),
  erased(runtimeClass),
  erased(role),
  erased(clusterRole),
  erased(roleBinding),
  erased(clusterRoleBinding),
  erased(priorityClass),
  erased(podGroup),
  erased(workload),
  erased(storageClass),
  erased(volumeAttributesClass),
  erased(csiDriver),
  erased(csiNode),
  erased(csiStorageCapacity),
  erased(volumeAttachment),
  erased(deviceClass),
  erased(resourceClaim),
  erased(resourceClaimTemplate),
  erased(resourceSlice),
  erased(deviceTaintRule),
  erased(resourcePoolStatusRequest),
  erased(storageVersionMigration),
  erased(flowSchema),
  erased(priorityLevelConfiguration),
  erased(storageVersion),
  erased(apiService),
  erased(customResourceDefinition),
  erased(mutatingWebhookConfiguration),
  erased(validatingWebhookConfiguration),
  erased(validatingAdmissionPolicy),
  erased(validatingAdmissionPolicyBinding),
  erased(mutatingAdmissionPolicy),
  erased(mutatingAdmissionPolicyBinding),
]

const byGroupKind: ReadonlyMap<string, KindStrategy> = new Map(strategies.map((strategy) => [`${strategy.group}/${strategy.kind}`, strategy]))

/** The strategy of a kind, or undefined when the generic rules are all there is. */
export function strategyFor(group: string, kind: string): KindStrategy | undefined {
  return byGroupKind.get(`${group}/${kind}`)
}

/** The registry calls each strategy only with objects of its own kind; the list's type cannot express that. */
function erased<T extends KubeObject>(strategy: KindStrategy<T>): KindStrategy {
  return strategy as unknown as KindStrategy
}
