/**
 * The built-in resources (L2), each with its type: what one hands to `client.of(…)`. Plain data, written out so that only what is used is bundled
 * and the editor knows the names; the test holds it against the API's own table. Custom resources are declared the same way by their users.
 */
import type * as admissionregistrationV1 from '#api/gen/types/admissionregistration.v1'
import type * as apiextensionsV1 from '#api/gen/types/apiextensions.v1'
import type * as apiregistrationV1 from '#api/gen/types/apiregistration.v1'
import type * as appsV1 from '#api/gen/types/apps.v1'
import type * as authenticationV1 from '#api/gen/types/authentication.v1'
import type * as authorizationV1 from '#api/gen/types/authorization.v1'
import type * as autoscalingV1 from '#api/gen/types/autoscaling.v1'
import type * as autoscalingV2 from '#api/gen/types/autoscaling.v2'
import type * as batchV1 from '#api/gen/types/batch.v1'
import type * as certificatesV1 from '#api/gen/types/certificates.v1'
import type * as coordinationV1 from '#api/gen/types/coordination.v1'
import type * as coreV1 from '#api/gen/types/core.v1'
import type * as discoveryV1 from '#api/gen/types/discovery.v1'
import type * as eventsGroupV1 from '#api/gen/types/events.v1'
import type * as flowcontrolV1 from '#api/gen/types/flowcontrol.v1'
import type * as networkingV1 from '#api/gen/types/networking.v1'
import type * as nodeV1 from '#api/gen/types/node.v1'
import type * as policyV1 from '#api/gen/types/policy.v1'
import type * as rbacV1 from '#api/gen/types/rbac.v1'
import type * as resourceV1 from '#api/gen/types/resource.v1'
import type * as schedulingV1 from '#api/gen/types/scheduling.v1'
import type * as storageV1 from '#api/gen/types/storage.v1'
import type { KubeObject } from '#api/machinery/meta'
import type { Resource } from './client.ts'

/** Declares a resource whose objects live in namespaces. */
export function namespaced<T extends KubeObject>(group: string, version: string, resource: string, kind: string): Resource<T> {
  return { group, version, resource, kind, namespaced: true }
}

/** Declares a resource whose objects are in no namespace. */
export function clusterScoped<T extends KubeObject>(group: string, version: string, resource: string, kind: string): Resource<T> {
  return { group, version, resource, kind, namespaced: false }
}

export const apiServices = clusterScoped<apiregistrationV1.APIService>('apiregistration.k8s.io', 'v1', 'apiservices', 'APIService')
export const bindings = namespaced<coreV1.Binding>('', 'v1', 'bindings', 'Binding')
export const componentStatuses = clusterScoped<coreV1.ComponentStatus>('', 'v1', 'componentstatuses', 'ComponentStatus')
export const configMaps = namespaced<coreV1.ConfigMap>('', 'v1', 'configmaps', 'ConfigMap')
export const endpoints = namespaced<coreV1.Endpoints>('', 'v1', 'endpoints', 'Endpoints')
export const events = namespaced<coreV1.Event>('', 'v1', 'events', 'Event')
export const limitRanges = namespaced<coreV1.LimitRange>('', 'v1', 'limitranges', 'LimitRange')
export const namespaces = clusterScoped<coreV1.Namespace>('', 'v1', 'namespaces', 'Namespace')
export const nodes = clusterScoped<coreV1.Node>('', 'v1', 'nodes', 'Node')
export const persistentVolumeClaims = namespaced<coreV1.PersistentVolumeClaim>('', 'v1', 'persistentvolumeclaims', 'PersistentVolumeClaim')
export const persistentVolumes = clusterScoped<coreV1.PersistentVolume>('', 'v1', 'persistentvolumes', 'PersistentVolume')
export const pods = namespaced<coreV1.Pod>('', 'v1', 'pods', 'Pod')
export const podTemplates = namespaced<coreV1.PodTemplate>('', 'v1', 'podtemplates', 'PodTemplate')
export const replicationControllers = namespaced<coreV1.ReplicationController>('', 'v1', 'replicationcontrollers', 'ReplicationController')
export const resourceQuotas = namespaced<coreV1.ResourceQuota>('', 'v1', 'resourcequotas', 'ResourceQuota')
export const secrets = namespaced<coreV1.Secret>('', 'v1', 'secrets', 'Secret')
export const serviceAccounts = namespaced<coreV1.ServiceAccount>('', 'v1', 'serviceaccounts', 'ServiceAccount')
export const services = namespaced<coreV1.Service>('', 'v1', 'services', 'Service')
export const controllerRevisions = namespaced<appsV1.ControllerRevision>('apps', 'v1', 'controllerrevisions', 'ControllerRevision')
export const daemonSets = namespaced<appsV1.DaemonSet>('apps', 'v1', 'daemonsets', 'DaemonSet')
export const deployments = namespaced<appsV1.Deployment>('apps', 'v1', 'deployments', 'Deployment')
export const replicaSets = namespaced<appsV1.ReplicaSet>('apps', 'v1', 'replicasets', 'ReplicaSet')
export const statefulSets = namespaced<appsV1.StatefulSet>('apps', 'v1', 'statefulsets', 'StatefulSet')
export const eventsV1 = namespaced<eventsGroupV1.Event>('events.k8s.io', 'v1', 'events', 'Event')
export const selfSubjectReviews = clusterScoped<authenticationV1.SelfSubjectReview>('authentication.k8s.io', 'v1', 'selfsubjectreviews', 'SelfSubjectReview')
export const tokenReviews = clusterScoped<authenticationV1.TokenReview>('authentication.k8s.io', 'v1', 'tokenreviews', 'TokenReview')
export const localSubjectAccessReviews = namespaced<authorizationV1.LocalSubjectAccessReview>(
  'authorization.k8s.io',
  'v1',
  'localsubjectaccessreviews',
  'LocalSubjectAccessReview',
)
export const selfSubjectAccessReviews = clusterScoped<authorizationV1.SelfSubjectAccessReview>(
  'authorization.k8s.io',
  'v1',
  'selfsubjectaccessreviews',
  'SelfSubjectAccessReview',
)
export const selfSubjectRulesReviews = clusterScoped<authorizationV1.SelfSubjectRulesReview>(
  'authorization.k8s.io',
  'v1',
  'selfsubjectrulesreviews',
  'SelfSubjectRulesReview',
)
export const subjectAccessReviews = clusterScoped<authorizationV1.SubjectAccessReview>(
  'authorization.k8s.io',
  'v1',
  'subjectaccessreviews',
  'SubjectAccessReview',
)
export const horizontalPodAutoscalers = namespaced<autoscalingV2.HorizontalPodAutoscaler>(
  'autoscaling',
  'v2',
  'horizontalpodautoscalers',
  'HorizontalPodAutoscaler',
)
export const horizontalPodAutoscalersV1 = namespaced<autoscalingV1.HorizontalPodAutoscaler>(
  'autoscaling',
  'v1',
  'horizontalpodautoscalers',
  'HorizontalPodAutoscaler',
)
export const cronJobs = namespaced<batchV1.CronJob>('batch', 'v1', 'cronjobs', 'CronJob')
export const jobs = namespaced<batchV1.Job>('batch', 'v1', 'jobs', 'Job')
export const certificateSigningRequests = clusterScoped<certificatesV1.CertificateSigningRequest>(
  'certificates.k8s.io',
  'v1',
  'certificatesigningrequests',
  'CertificateSigningRequest',
)
export const ingressClasses = clusterScoped<networkingV1.IngressClass>('networking.k8s.io', 'v1', 'ingressclasses', 'IngressClass')
export const ingresses = namespaced<networkingV1.Ingress>('networking.k8s.io', 'v1', 'ingresses', 'Ingress')
export const ipAddresses = clusterScoped<networkingV1.IPAddress>('networking.k8s.io', 'v1', 'ipaddresses', 'IPAddress')
export const networkPolicies = namespaced<networkingV1.NetworkPolicy>('networking.k8s.io', 'v1', 'networkpolicies', 'NetworkPolicy')
export const serviceCIDRs = clusterScoped<networkingV1.ServiceCIDR>('networking.k8s.io', 'v1', 'servicecidrs', 'ServiceCIDR')
export const podDisruptionBudgets = namespaced<policyV1.PodDisruptionBudget>('policy', 'v1', 'poddisruptionbudgets', 'PodDisruptionBudget')
export const clusterRoleBindings = clusterScoped<rbacV1.ClusterRoleBinding>('rbac.authorization.k8s.io', 'v1', 'clusterrolebindings', 'ClusterRoleBinding')
export const clusterRoles = clusterScoped<rbacV1.ClusterRole>('rbac.authorization.k8s.io', 'v1', 'clusterroles', 'ClusterRole')
export const roleBindings = namespaced<rbacV1.RoleBinding>('rbac.authorization.k8s.io', 'v1', 'rolebindings', 'RoleBinding')
export const roles = namespaced<rbacV1.Role>('rbac.authorization.k8s.io', 'v1', 'roles', 'Role')
export const csiDrivers = clusterScoped<storageV1.CSIDriver>('storage.k8s.io', 'v1', 'csidrivers', 'CSIDriver')
export const csiNodes = clusterScoped<storageV1.CSINode>('storage.k8s.io', 'v1', 'csinodes', 'CSINode')
export const csiStorageCapacities = namespaced<storageV1.CSIStorageCapacity>('storage.k8s.io', 'v1', 'csistoragecapacities', 'CSIStorageCapacity')
export const storageClasses = clusterScoped<storageV1.StorageClass>('storage.k8s.io', 'v1', 'storageclasses', 'StorageClass')
export const volumeAttachments = clusterScoped<storageV1.VolumeAttachment>('storage.k8s.io', 'v1', 'volumeattachments', 'VolumeAttachment')
export const volumeAttributesClasses = clusterScoped<storageV1.VolumeAttributesClass>(
  'storage.k8s.io',
  'v1',
  'volumeattributesclasses',
  'VolumeAttributesClass',
)
export const mutatingAdmissionPolicies = clusterScoped<admissionregistrationV1.MutatingAdmissionPolicy>(
  'admissionregistration.k8s.io',
  'v1',
  'mutatingadmissionpolicies',
  'MutatingAdmissionPolicy',
)
export const mutatingAdmissionPolicyBindings = clusterScoped<admissionregistrationV1.MutatingAdmissionPolicyBinding>(
  'admissionregistration.k8s.io',
  'v1',
  'mutatingadmissionpolicybindings',
  'MutatingAdmissionPolicyBinding',
)
export const mutatingWebhookConfigurations = clusterScoped<admissionregistrationV1.MutatingWebhookConfiguration>(
  'admissionregistration.k8s.io',
  'v1',
  'mutatingwebhookconfigurations',
  'MutatingWebhookConfiguration',
)
export const validatingAdmissionPolicies = clusterScoped<admissionregistrationV1.ValidatingAdmissionPolicy>(
  'admissionregistration.k8s.io',
  'v1',
  'validatingadmissionpolicies',
  'ValidatingAdmissionPolicy',
)
export const validatingAdmissionPolicyBindings = clusterScoped<admissionregistrationV1.ValidatingAdmissionPolicyBinding>(
  'admissionregistration.k8s.io',
  'v1',
  'validatingadmissionpolicybindings',
  'ValidatingAdmissionPolicyBinding',
)
export const validatingWebhookConfigurations = clusterScoped<admissionregistrationV1.ValidatingWebhookConfiguration>(
  'admissionregistration.k8s.io',
  'v1',
  'validatingwebhookconfigurations',
  'ValidatingWebhookConfiguration',
)
export const customResourceDefinitions = clusterScoped<apiextensionsV1.CustomResourceDefinition>(
  'apiextensions.k8s.io',
  'v1',
  'customresourcedefinitions',
  'CustomResourceDefinition',
)
export const priorityClasses = clusterScoped<schedulingV1.PriorityClass>('scheduling.k8s.io', 'v1', 'priorityclasses', 'PriorityClass')
export const leases = namespaced<coordinationV1.Lease>('coordination.k8s.io', 'v1', 'leases', 'Lease')
export const runtimeClasses = clusterScoped<nodeV1.RuntimeClass>('node.k8s.io', 'v1', 'runtimeclasses', 'RuntimeClass')
export const endpointSlices = namespaced<discoveryV1.EndpointSlice>('discovery.k8s.io', 'v1', 'endpointslices', 'EndpointSlice')
export const flowSchemas = clusterScoped<flowcontrolV1.FlowSchema>('flowcontrol.apiserver.k8s.io', 'v1', 'flowschemas', 'FlowSchema')
export const priorityLevelConfigurations = clusterScoped<flowcontrolV1.PriorityLevelConfiguration>(
  'flowcontrol.apiserver.k8s.io',
  'v1',
  'prioritylevelconfigurations',
  'PriorityLevelConfiguration',
)
export const deviceClasses = clusterScoped<resourceV1.DeviceClass>('resource.k8s.io', 'v1', 'deviceclasses', 'DeviceClass')
export const resourceClaims = namespaced<resourceV1.ResourceClaim>('resource.k8s.io', 'v1', 'resourceclaims', 'ResourceClaim')
export const resourceClaimTemplates = namespaced<resourceV1.ResourceClaimTemplate>('resource.k8s.io', 'v1', 'resourceclaimtemplates', 'ResourceClaimTemplate')
export const resourceSlices = clusterScoped<resourceV1.ResourceSlice>('resource.k8s.io', 'v1', 'resourceslices', 'ResourceSlice')
