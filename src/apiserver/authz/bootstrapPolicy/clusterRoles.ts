/**
 * The cluster roles that every cluster has (L3, data). Upstream: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go (v1.36).
 * The node role's rules are also what the Node authorizer lets a kubelet do beyond its own pods' objects.
 */
import { bareMap } from '#base/bareMap'
import { events, read, readWrite, type ShortRoles, type ShortRule, write } from './shorthand.ts'

const certificates = 'certificates.k8s.io'
const approver = (signer: string): readonly ShortRule[] => [['approve', certificates, 'signers', signer]]
const delegated: readonly ShortRule[] = [
  ['create', 'authentication.k8s.io', 'tokenreviews'],
  ['create', 'authorization.k8s.io', 'subjectaccessreviews'],
]
const bothEvents = '- events.k8s.io'

/** Selects the labels of the roles that these roles gather. */
export const aggregated: Readonly<Record<string, string>> = bareMap({ admin: 'aggregate-to-admin', edit: 'aggregate-to-edit', view: 'aggregate-to-view' })

/** Which roles carry which aggregation label. */
export const aggregationLabels: Readonly<Record<string, string>> = bareMap({
  edit: 'aggregate-to-admin',
  view: 'aggregate-to-edit',
  'system:aggregate-to-admin': 'aggregate-to-admin',
  'system:aggregate-to-edit': 'aggregate-to-edit',
  'system:aggregate-to-view': 'aggregate-to-view',
})

export const nodeRules: readonly ShortRule[] = [
  ['create', 'authentication.k8s.io', 'tokenreviews'],
  ['create', 'authorization.k8s.io', 'localsubjectaccessreviews subjectaccessreviews'],
  [read, '-', 'services'],
  ['create get list watch', '-', 'nodes'],
  ['patch update', '-', 'nodes/status'],
  ['patch update', '-', 'nodes'],
  ['create patch update', bothEvents, 'events'],
  [read, '-', 'pods'],
  ['create delete', '-', 'pods'],
  ['patch update', '-', 'pods/status'],
  ['create', '-', 'pods/eviction'],
  [read, '-', 'configmaps secrets'],
  ['get', '-', 'persistentvolumeclaims persistentvolumes'],
  ['get', '-', 'endpoints'],
  ['create get list watch', certificates, 'certificatesigningrequests'],
  ['create delete get patch update', 'coordination.k8s.io', 'leases'],
  ['get', 'storage.k8s.io', 'volumeattachments'],
  ['create', '-', 'serviceaccounts/token'],
  ['get patch update', '-', 'persistentvolumeclaims/status'],
  [read, 'storage.k8s.io', 'csidrivers'],
  ['create delete get patch update', 'storage.k8s.io', 'csinodes'],
  [read, 'node.k8s.io', 'runtimeclasses'],
  ['get', 'resource.k8s.io', 'resourceclaims'],
  ['deletecollection', 'resource.k8s.io', 'resourceslices'],
  ['get', '-', 'serviceaccounts'],
]

export const clusterRoles: ShortRoles = {
  'cluster-admin': [
    ['*', '*', '*'],
    ['*', '*'],
  ],
  admin: [],
  edit: [],
  view: [],
  'system:discovery': [['get', '/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/']],
  'system:monitoring': [
    ['get', '/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz'],
    ['get', '-', 'nodes/metrics'],
  ],
  'system:basic-user': [
    ['create', 'authorization.k8s.io', 'selfsubjectaccessreviews selfsubjectrulesreviews'],
    ['create', 'authentication.k8s.io', 'selfsubjectreviews'],
  ],
  'system:public-info-viewer': [['get', '/healthz /livez /readyz /version /version/']],
  'system:aggregate-to-admin': [
    ['create', 'authorization.k8s.io', 'localsubjectaccessreviews'],
    [readWrite, 'rbac.authorization.k8s.io', 'rolebindings roles'],
  ],
  'system:aggregate-to-edit': [
    [read, '-', 'pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy'],
    ['impersonate', '-', 'serviceaccounts'],
    [write, '-', 'pods pods/attach pods/exec pods/portforward pods/proxy'],
    ['create', '-', 'pods/eviction'],
    [write, '-', 'configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy'],
    ['create', '-', 'serviceaccounts/token'],
    [write, bothEvents, 'events'],
    [write, 'apps', 'daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale'],
    [write, 'autoscaling', 'horizontalpodautoscalers'],
    [write, 'batch', 'cronjobs jobs'],
    [
      write,
      'extensions',
      'daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets replicasets/scale replicationcontrollers/scale',
    ],
    [write, 'policy', 'poddisruptionbudgets'],
    [write, 'networking.k8s.io', 'ingresses networkpolicies'],
    [readWrite, 'coordination.k8s.io', 'leases'],
    [write, 'resource.k8s.io', 'resourceclaims resourceclaimtemplates'],
  ],
  'system:aggregate-to-view': [
    [
      read,
      '-',
      'configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status',
    ],
    [read, '-', 'bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas resourcequotas/status'],
    [read, '-', 'namespaces'],
    [read, bothEvents, 'events'],
    [read, 'discovery.k8s.io', 'endpointslices'],
    [
      read,
      'apps',
      'controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status',
    ],
    [read, 'autoscaling', 'horizontalpodautoscalers horizontalpodautoscalers/status'],
    [read, 'batch', 'cronjobs cronjobs/status jobs jobs/status'],
    [
      read,
      'extensions',
      'daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale',
    ],
    [read, 'policy', 'poddisruptionbudgets poddisruptionbudgets/status'],
    [read, 'networking.k8s.io', 'ingresses ingresses/status networkpolicies'],
    [read, 'resource.k8s.io', 'resourceclaims resourceclaims/status resourceclaimtemplates'],
  ],
  'system:heapster': [
    [read, '-', 'events namespaces nodes pods'],
    [read, 'extensions', 'deployments'],
  ],
  'system:node': nodeRules,
  'system:node-problem-detector': [['get', '-', 'nodes'], ['patch', '-', 'nodes/status'], events],
  'system:kubelet-api-admin': [
    [read, '-', 'nodes'],
    ['proxy', '-', 'nodes'],
    ['*', '-', 'nodes/log nodes/metrics nodes/proxy nodes/stats'],
    ['*', '-', 'nodes/configz nodes/healthz nodes/pods'],
  ],
  'system:node-bootstrapper': [['create get list watch', certificates, 'certificatesigningrequests']],
  'system:auth-delegator': delegated,
  'system:kube-aggregator': [[read, '-', 'endpoints services']],
  'system:kube-controller-manager': [
    events,
    ['create', 'coordination.k8s.io', 'leases'],
    ['get update', 'coordination.k8s.io', 'leases', 'kube-controller-manager'],
    ['create', '-', 'secrets serviceaccounts'],
    ['delete', '-', 'secrets'],
    ['get', '-', 'configmaps namespaces secrets serviceaccounts'],
    ['update', '-', 'secrets serviceaccounts'],
    ...delegated,
    ['list watch', '*', '*'],
    ['create', '-', 'serviceaccounts/token'],
  ],
  'system:kube-dns': [['list watch', '-', 'endpoints services']],
  'system:persistent-volume-provisioner': [
    ['create delete get list watch', '-', 'persistentvolumes'],
    ['get list update watch', '-', 'persistentvolumeclaims'],
    [read, 'storage.k8s.io', 'storageclasses'],
    ['watch', '-', 'events'],
    events,
  ],
  'system:kube-scheduler': [
    events,
    ['create', 'coordination.k8s.io', 'leases'],
    ['get list update watch', 'coordination.k8s.io', 'leases', 'kube-scheduler'],
    [readWrite, 'coordination.k8s.io', 'leasecandidates'],
    [read, '-', 'nodes'],
    ['delete get list watch', '-', 'pods'],
    ['create', '-', 'bindings pods/binding'],
    ['patch update', '-', 'pods/status'],
    [read, '-', 'replicationcontrollers services'],
    [read, 'apps extensions', 'replicasets'],
    [read, 'apps', 'statefulsets'],
    [read, 'policy', 'poddisruptionbudgets'],
    [read, '-', 'persistentvolumeclaims persistentvolumes'],
    ...delegated,
    [read, 'storage.k8s.io', 'csinodes'],
    [read, 'storage.k8s.io', 'volumeattachments'],
    [read, '-', 'namespaces'],
    [read, 'storage.k8s.io', 'csidrivers'],
    [read, 'storage.k8s.io', 'csistoragecapacities'],
    [read, 'resource.k8s.io', 'deviceclasses'],
    ['get list patch update watch', 'resource.k8s.io', 'resourceclaims'],
    ['get list patch update watch', 'resource.k8s.io', 'resourceclaims/status'],
    ['update', '-', 'pods/finalizers'],
    [read, 'resource.k8s.io', 'resourceslices'],
    ['create delete', 'resource.k8s.io', 'resourceclaims'],
    ['patch update', 'resource.k8s.io', 'resourceclaims/binding'],
  ],
  'system:node-proxier': [
    ['list watch', '-', 'endpoints services'],
    [read, '-', 'nodes'],
    events,
    ['list watch', 'networking.k8s.io', 'servicecidrs'],
    ['list watch', 'discovery.k8s.io', 'endpointslices'],
  ],
  'system:volume-scheduler': [
    ['get list patch update watch', '-', 'persistentvolumes'],
    [read, 'storage.k8s.io', 'storageclasses'],
    ['get list patch update watch', '-', 'persistentvolumeclaims'],
  ],
  'system:service-account-issuer-discovery': [['get', '/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/']],
  'system:certificates.k8s.io:certificatesigningrequests:nodeclient': [['create', certificates, 'certificatesigningrequests/nodeclient']],
  'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient': [['create', certificates, 'certificatesigningrequests/selfnodeclient']],
  'system:certificates.k8s.io:kube-apiserver-client-approver': approver('kubernetes.io/kube-apiserver-client'),
  'system:certificates.k8s.io:kube-apiserver-client-kubelet-approver': approver('kubernetes.io/kube-apiserver-client-kubelet'),
  'system:certificates.k8s.io:kubelet-serving-approver': approver('kubernetes.io/kubelet-serving'),
  'system:certificates.k8s.io:legacy-unknown-approver': approver('kubernetes.io/legacy-unknown'),
}

/** Cluster role → its subjects, as `Kind:name` (service accounts with their namespace). Bindings are named after their roles. */
export const clusterRoleBindings: Readonly<Record<string, readonly string[]>> = {
  'cluster-admin': ['Group:system:masters'],
  'system:monitoring': ['Group:system:monitoring'],
  'system:discovery': ['Group:system:authenticated'],
  'system:basic-user': ['Group:system:authenticated'],
  'system:public-info-viewer': ['Group:system:authenticated', 'Group:system:unauthenticated'],
  'system:node-proxier': ['User:system:kube-proxy'],
  'system:kube-controller-manager': ['User:system:kube-controller-manager'],
  'system:kube-dns': ['ServiceAccount:kube-system/kube-dns'],
  'system:kube-scheduler': ['User:system:kube-scheduler'],
  'system:volume-scheduler': ['User:system:kube-scheduler'],
  'system:node': [],
  'system:service-account-issuer-discovery': ['Group:system:serviceaccounts'],
}
