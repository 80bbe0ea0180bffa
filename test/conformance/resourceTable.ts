/** The 68 resources that v1.36 serves by default, as clients see them in discovery, and the least object of each that can be created. */
import { ecdsaRequest } from '#testing/testCertificateRequests'

/** Group-version, name, short names, kind, 'ns' or '' for cluster scope, verbs, categories, subresources (`name:verbs`, without verbs: get patch update). */
export type ResourceRow = readonly [
  groupVersion: string,
  name: string,
  shortNames: string,
  kind: string,
  scope: 'ns' | '',
  verbs: string,
  categories: string,
  subresources: string,
]

export const full = 'create delete deletecollection get list patch update watch'

export const resourceTable: readonly ResourceRow[] = [
  ['v1', 'bindings', '', 'Binding', 'ns', 'create', '', ''],
  ['v1', 'componentstatuses', 'cs', 'ComponentStatus', '', 'get list', '', ''],
  ['v1', 'configmaps', 'cm', 'ConfigMap', 'ns', full, '', ''],
  ['v1', 'endpoints', 'ep', 'Endpoints', 'ns', full, '', ''],
  ['v1', 'events', 'ev', 'Event', 'ns', full, '', ''],
  ['v1', 'limitranges', 'limits', 'LimitRange', 'ns', full, '', ''],
  ['v1', 'namespaces', 'ns', 'Namespace', '', 'create delete get list patch update watch', '', 'finalize:update status'],
  ['v1', 'nodes', 'no', 'Node', '', full, '', 'proxy:create,delete,get,patch,update status'],
  ['v1', 'persistentvolumeclaims', 'pvc', 'PersistentVolumeClaim', 'ns', full, '', 'status'],
  ['v1', 'persistentvolumes', 'pv', 'PersistentVolume', '', full, '', 'status'],
  [
    'v1',
    'pods',
    'po',
    'Pod',
    'ns',
    full,
    'all',
    'attach:create,get binding:create ephemeralcontainers eviction:create exec:create,get log:get portforward:create,get proxy:create,delete,get,patch,update resize status',
  ],
  ['v1', 'podtemplates', '', 'PodTemplate', 'ns', full, '', ''],
  ['v1', 'replicationcontrollers', 'rc', 'ReplicationController', 'ns', full, 'all', 'scale status'],
  ['v1', 'resourcequotas', 'quota', 'ResourceQuota', 'ns', full, '', 'status'],
  ['v1', 'secrets', '', 'Secret', 'ns', full, '', ''],
  ['v1', 'serviceaccounts', 'sa', 'ServiceAccount', 'ns', full, '', 'token:create'],
  ['v1', 'services', 'svc', 'Service', 'ns', full, 'all', 'proxy:create,delete,get,patch,update status'],
  ['apps/v1', 'controllerrevisions', '', 'ControllerRevision', 'ns', full, '', ''],
  ['apps/v1', 'daemonsets', 'ds', 'DaemonSet', 'ns', full, 'all', 'status'],
  ['apps/v1', 'deployments', 'deploy', 'Deployment', 'ns', full, 'all', 'scale status'],
  ['apps/v1', 'replicasets', 'rs', 'ReplicaSet', 'ns', full, 'all', 'scale status'],
  ['apps/v1', 'statefulsets', 'sts', 'StatefulSet', 'ns', full, 'all', 'scale status'],
  ['batch/v1', 'cronjobs', 'cj', 'CronJob', 'ns', full, 'all', 'status'],
  ['batch/v1', 'jobs', '', 'Job', 'ns', full, 'all', 'status'],
  ['autoscaling/v1', 'horizontalpodautoscalers', 'hpa', 'HorizontalPodAutoscaler', 'ns', full, 'all', 'status'],
  ['autoscaling/v2', 'horizontalpodautoscalers', 'hpa', 'HorizontalPodAutoscaler', 'ns', full, 'all', 'status'],
  ['networking.k8s.io/v1', 'ingressclasses', '', 'IngressClass', '', full, '', ''],
  ['networking.k8s.io/v1', 'ingresses', 'ing', 'Ingress', 'ns', full, '', 'status'],
  ['networking.k8s.io/v1', 'ipaddresses', 'ip', 'IPAddress', '', full, '', ''],
  ['networking.k8s.io/v1', 'networkpolicies', 'netpol', 'NetworkPolicy', 'ns', full, '', ''],
  ['networking.k8s.io/v1', 'servicecidrs', '', 'ServiceCIDR', '', full, '', 'status'],
  ['discovery.k8s.io/v1', 'endpointslices', '', 'EndpointSlice', 'ns', full, '', ''],
  ['policy/v1', 'poddisruptionbudgets', 'pdb', 'PodDisruptionBudget', 'ns', full, '', 'status'],
  ['storage.k8s.io/v1', 'csidrivers', '', 'CSIDriver', '', full, '', ''],
  ['storage.k8s.io/v1', 'csinodes', '', 'CSINode', '', full, '', ''],
  ['storage.k8s.io/v1', 'csistoragecapacities', '', 'CSIStorageCapacity', 'ns', full, '', ''],
  ['storage.k8s.io/v1', 'storageclasses', 'sc', 'StorageClass', '', full, '', ''],
  ['storage.k8s.io/v1', 'volumeattachments', '', 'VolumeAttachment', '', full, '', 'status'],
  ['storage.k8s.io/v1', 'volumeattributesclasses', 'vac', 'VolumeAttributesClass', '', full, '', ''],
  ['resource.k8s.io/v1', 'deviceclasses', '', 'DeviceClass', '', full, '', ''],
  ['resource.k8s.io/v1', 'resourceclaims', '', 'ResourceClaim', 'ns', full, '', 'status'],
  ['resource.k8s.io/v1', 'resourceclaimtemplates', '', 'ResourceClaimTemplate', 'ns', full, '', ''],
  ['resource.k8s.io/v1', 'resourceslices', '', 'ResourceSlice', '', full, '', ''],
  ['scheduling.k8s.io/v1', 'priorityclasses', 'pc', 'PriorityClass', '', full, '', ''],
  ['node.k8s.io/v1', 'runtimeclasses', '', 'RuntimeClass', '', full, '', ''],
  ['coordination.k8s.io/v1', 'leases', '', 'Lease', 'ns', full, '', ''],
  ['events.k8s.io/v1', 'events', 'ev', 'Event', 'ns', full, '', ''],
  ['rbac.authorization.k8s.io/v1', 'clusterrolebindings', '', 'ClusterRoleBinding', '', full, '', ''],
  ['rbac.authorization.k8s.io/v1', 'clusterroles', '', 'ClusterRole', '', full, '', ''],
  ['rbac.authorization.k8s.io/v1', 'rolebindings', '', 'RoleBinding', 'ns', full, '', ''],
  ['rbac.authorization.k8s.io/v1', 'roles', '', 'Role', 'ns', full, '', ''],
  ['authentication.k8s.io/v1', 'selfsubjectreviews', '', 'SelfSubjectReview', '', 'create', '', ''],
  ['authentication.k8s.io/v1', 'tokenreviews', '', 'TokenReview', '', 'create', '', ''],
  ['authorization.k8s.io/v1', 'localsubjectaccessreviews', '', 'LocalSubjectAccessReview', 'ns', 'create', '', ''],
  ['authorization.k8s.io/v1', 'selfsubjectaccessreviews', '', 'SelfSubjectAccessReview', '', 'create', '', ''],
  ['authorization.k8s.io/v1', 'selfsubjectrulesreviews', '', 'SelfSubjectRulesReview', '', 'create', '', ''],
  ['authorization.k8s.io/v1', 'subjectaccessreviews', '', 'SubjectAccessReview', '', 'create', '', ''],
  ['certificates.k8s.io/v1', 'certificatesigningrequests', 'csr', 'CertificateSigningRequest', '', full, '', 'approval status'],
  ['admissionregistration.k8s.io/v1', 'mutatingadmissionpolicies', '', 'MutatingAdmissionPolicy', '', full, 'api-extensions', ''],
  ['admissionregistration.k8s.io/v1', 'mutatingadmissionpolicybindings', '', 'MutatingAdmissionPolicyBinding', '', full, 'api-extensions', ''],
  ['admissionregistration.k8s.io/v1', 'mutatingwebhookconfigurations', '', 'MutatingWebhookConfiguration', '', full, 'api-extensions', ''],
  ['admissionregistration.k8s.io/v1', 'validatingadmissionpolicies', '', 'ValidatingAdmissionPolicy', '', full, 'api-extensions', 'status'],
  ['admissionregistration.k8s.io/v1', 'validatingadmissionpolicybindings', '', 'ValidatingAdmissionPolicyBinding', '', full, 'api-extensions', ''],
  ['admissionregistration.k8s.io/v1', 'validatingwebhookconfigurations', '', 'ValidatingWebhookConfiguration', '', full, 'api-extensions', ''],
  ['flowcontrol.apiserver.k8s.io/v1', 'flowschemas', '', 'FlowSchema', '', full, '', 'status'],
  ['flowcontrol.apiserver.k8s.io/v1', 'prioritylevelconfigurations', '', 'PriorityLevelConfiguration', '', full, '', 'status'],
  ['apiextensions.k8s.io/v1', 'customresourcedefinitions', 'crd,crds', 'CustomResourceDefinition', '', full, 'api-extensions', 'status'],
  ['apiregistration.k8s.io/v1', 'apiservices', '', 'APIService', '', full, 'api-extensions', 'status'],
]

const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'x' }] } }
const selector = { matchLabels: { a: 'b' } }
const jobTemplate = { ...template, spec: { ...template.spec, restartPolicy: 'Never' } }
const deviceRequest = { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'c.example.com' } }] } }
const webhook = { name: 'a.example.com', admissionReviewVersions: ['v1'], sideEffects: 'None', clientConfig: { url: 'https://a.example.com' } }

const matched = { resourceRules: [{ apiGroups: ['example.com'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['lives'] }] }

/** What a kind cannot do without, by resource, or group/resource where two groups have it. */
const least: Readonly<Record<string, object>> = {
  pods: { spec: template.spec },
  podtemplates: { template },
  replicationcontrollers: { spec: { selector: { a: 'b' }, template } },
  services: { spec: { ports: [{ port: 80 }] } },
  persistentvolumes: { spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } } },
  persistentvolumeclaims: { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } },
  limitranges: { spec: { limits: [] } },
  controllerrevisions: { revision: 1, data: {} },
  deployments: { spec: { selector, template } },
  replicasets: { spec: { selector, template } },
  statefulsets: { spec: { selector, template, serviceName: 's' } },
  daemonsets: { spec: { selector, template } },
  jobs: { spec: { template: jobTemplate } },
  cronjobs: { spec: { schedule: '* * * * *', jobTemplate: { spec: { template: jobTemplate } } } },
  horizontalpodautoscalers: { spec: { maxReplicas: 2, scaleTargetRef: { kind: 'Deployment', name: 'd', apiVersion: 'apps/v1' } } },
  ingressclasses: { spec: { controller: 'example.com/c' } },
  ingresses: { spec: { defaultBackend: { service: { name: 's', port: { number: 80 } } } } },
  ipaddresses: { spec: { parentRef: { resource: 'services', name: 's', namespace: 'default' } } },
  networkpolicies: { spec: { podSelector: {} } },
  servicecidrs: { spec: { cidrs: ['10.100.0.0/16'] } },
  endpointslices: { addressType: 'IPv4', endpoints: [] },
  poddisruptionbudgets: { spec: { selector, maxUnavailable: 1 } },
  csidrivers: { spec: {} },
  csinodes: { spec: { drivers: [] } },
  csistoragecapacities: { storageClassName: 's' },
  storageclasses: { provisioner: 'example.com/p' },
  volumeattachments: { spec: { attacher: 'a', nodeName: 'n', source: { persistentVolumeName: 'v' } } },
  volumeattributesclasses: { driverName: 'example.com', parameters: { a: 'b' } },
  deviceclasses: { spec: {} },
  resourceclaims: { spec: deviceRequest },
  resourceclaimtemplates: { spec: { spec: deviceRequest } },
  resourceslices: { spec: { driver: 'example.com', nodeName: 'n', pool: { name: 'p', generation: 1, resourceSliceCount: 1 } } },
  priorityclasses: { value: 7 },
  runtimeclasses: { handler: 'h' },
  leases: { spec: {} },
  'events.k8s.io/events': {
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: 'example.com/c',
    reportingInstance: 'i',
    action: 'A',
    reason: 'R',
    type: 'Normal',
    regarding: { namespace: 'default' },
  },
  events: { involvedObject: { namespace: 'default' } },
  clusterrolebindings: { roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'r' } },
  rolebindings: { roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'r' } },
  certificatesigningrequests: { spec: { request: ecdsaRequest, signerName: 'example.com/signer', usages: ['client auth'] } },
  customresourcedefinitions: {
    spec: {
      group: 'example.com',
      names: { plural: 'lives', singular: 'life', kind: 'Life', listKind: 'LifeList' },
      scope: 'Namespaced',
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  },
  apiservices: {
    spec: {
      group: 'life.example.com',
      version: 'v1',
      groupPriorityMinimum: 100,
      versionPriority: 10,
    },
  },
  flowschemas: {
    spec: {
      priorityLevelConfiguration: { name: 'exempt' },
      rules: [{ subjects: [{ kind: 'User', user: { name: 'u' } }], nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/x'] }] }],
    },
  },
  prioritylevelconfigurations: { spec: { type: 'Limited', limited: { limitResponse: { type: 'Reject' } } } },
  mutatingadmissionpolicies: {
    spec: {
      matchConstraints: matched,
      reinvocationPolicy: 'Never',
      mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: '[JSONPatch{op: "remove", path: "/metadata/labels/old"}]' } }],
    },
  },
  mutatingadmissionpolicybindings: { spec: { policyName: 'p.example.com' } },
  validatingadmissionpolicies: { spec: { matchConstraints: matched, validations: [{ expression: 'true' }] } },
  validatingadmissionpolicybindings: { spec: { policyName: 'p.example.com', validationActions: ['Deny'] } },
  bindings: { target: { kind: 'Node', name: 'n' } },
  selfsubjectreviews: {},
  tokenreviews: { spec: { token: 't' } },
  localsubjectaccessreviews: { spec: { user: 'u', resourceAttributes: { namespace: 'default', verb: 'get', resource: 'pods' } } },
  selfsubjectaccessreviews: { spec: { nonResourceAttributes: { path: '/', verb: 'get' } } },
  selfsubjectrulesreviews: { spec: { namespace: 'default' } },
  subjectaccessreviews: { spec: { user: 'u', nonResourceAttributes: { path: '/', verb: 'get' } } },
  mutatingwebhookconfigurations: { webhooks: [webhook] },
  validatingwebhookconfigurations: { webhooks: [webhook] },
}

/** Names that rules of the kind ask for. */
const nameOf: Readonly<Record<string, string>> = {
  ipaddresses: '10.200.0.1',
  customresourcedefinitions: 'lives.example.com',
  apiservices: 'v1.life.example.com',
}

/** The least object of a resource that can be created, without its metadata. */
export function leastOf(group: string, resource: string): object | undefined {
  return least[`${group}/${resource}`] ?? least[resource]
}

/** The name that its rules allow. */
export function nameFor(resource: string): string {
  return nameOf[resource] ?? 'life-of-one'
}
