/** Objects as no API server of today takes them: written by an older version, by another program into the store, or before a rule was added. */

const meta = (name: string, namespaced = true) => ({
  name,
  ...(namespaced ? { namespace: 'tenant' } : {}),
  uid: `broken-${name}`,
  creationTimestamp: '2026-01-01T00:00:00Z',
})
const of = (apiVersion: string, kind: string, rest: object, namespaced = true) => ({ apiVersion, kind, metadata: meta('broken', namespaced), ...rest })

const containers = [{ name: 'c', image: 'i' }]
const selector = { matchExpressions: [{ key: 'a', operator: 'Nearly', values: ['b'] }] }
const template = { metadata: { labels: { a: 'b' } }, spec: { containers } }

/** By their keys in the store, and where the API serves them. */
export const broken: readonly { readonly key: string; readonly path: string; readonly object: object }[] = [
  ...namespaced('apps/v1', 'StatefulSet', 'statefulsets', { spec: { replicas: -5, selector, template } }),
  ...namespaced('apps/v1', 'Deployment', 'deployments', {
    spec: { replicas: 1e30, selector, template: {}, strategy: { rollingUpdate: { maxSurge: 'many' } } },
  }),
  ...namespaced('apps/v1', 'ReplicaSet', 'replicasets', { spec: { selector } }),
  ...namespaced('apps/v1', 'DaemonSet', 'daemonsets', { spec: { selector: {} } }),
  ...namespaced('batch/v1', 'Job', 'jobs', { spec: { completions: -1, completionMode: 'Indexed' }, status: { completedIndexes: '0-9999999999,x,-' } }),
  ...namespaced('batch/v1', 'CronJob', 'cronjobs', { spec: { schedule: 'now and then', timeZone: 'Mars/Olympus' } }),
  ...namespaced('v1', 'ReplicationController', 'replicationcontrollers', { spec: {} }, 'controllers'),
  ...namespaced('v1', 'ConfigMap', 'configmaps', { data: { a: 'b' }, immutable: true }),
  ...namespaced('v1', 'Secret', 'secrets', { type: 'kubernetes.io/service-account-token', data: { token: '####' } }),
  ...namespaced('v1', 'Service', 'services', { spec: { clusterIP: 'nowhere', ports: [{ port: 99_999_999 }], selector: { a: 'b' } } }, 'services/specs'),
  ...namespaced('v1', 'Endpoints', 'endpoints', { subsets: [{ addresses: [{ ip: 'nowhere' }], ports: [{ port: -1 }] }] }, 'services/endpoints'),
  ...namespaced('discovery.k8s.io/v1', 'EndpointSlice', 'endpointslices', { addressType: 'Carrier', endpoints: [{ addresses: [] }] }),
  ...namespaced('v1', 'ResourceQuota', 'resourcequotas', { spec: { hard: { pods: 'lots' }, scopes: ['Odd'] }, status: { used: { pods: 'none' } } }),
  ...namespaced('v1', 'LimitRange', 'limitranges', { spec: { limits: [{ type: 'Container', max: { cpu: 'much' } }] } }),
  ...namespaced('v1', 'PersistentVolumeClaim', 'persistentvolumeclaims', { spec: { resources: { requests: { storage: 'big' } } } }),
  ...localVolume(),
  ...namespaced('policy/v1', 'PodDisruptionBudget', 'poddisruptionbudgets', { spec: { selector, minAvailable: 'half' } }),
  ...namespaced('resource.k8s.io/v1', 'ResourceClaim', 'resourceclaims', { spec: { devices: { requests: [{ name: 'r' }], constraints: [{}] } } }),
  ...namespaced('rbac.authorization.k8s.io/v1', 'Role', 'roles', { rules: [{}] }),
  ...namespaced('rbac.authorization.k8s.io/v1', 'RoleBinding', 'rolebindings', { subjects: [{}], roleRef: {} }),
  ...namespaced('v1', 'Pod', 'pods', {
    spec: {
      containers: [{ name: 'c', image: 'i', resources: { requests: { cpu: 'fast' } } }],
      affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: selector }] } },
      topologySpreadConstraints: [{ maxSkew: 0, topologyKey: '', whenUnsatisfiable: 'Never', labelSelector: selector }],
      schedulerName: 'default-scheduler',
    },
    status: { phase: 'Odd' },
  }),
  ...cluster('v1', 'Node', 'nodes', { spec: { podCIDRs: ['here'], taints: [{}] }, status: { allocatable: { cpu: 'fast' }, conditions: [{}] } }, 'minions'),
  ...cluster('v1', 'PersistentVolume', 'persistentvolumes', { spec: { capacity: { storage: 'big' }, claimRef: {} } }),
  ...cluster('apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'customresourcedefinitions', {
    spec: {
      group: 'b.c',
      scope: 'Namespaced',
      names: { plural: 'broken', kind: 'Broken' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'odd', properties: { a: { 'x-kubernetes-validations': [{ rule: '((' }] } } } },
        },
      ],
    },
    status: {
      conditions: [
        { type: 'Established', status: 'True' },
        { type: 'NamesAccepted', status: 'True' },
      ],
      acceptedNames: { plural: 'broken', kind: 'Broken' },
      storedVersions: ['v1'],
    },
  }),
  ...cluster('apiregistration.k8s.io/v1', 'APIService', 'apiservices', { spec: { group: 'odd', version: 'v9', service: {} } }),
  ...cluster('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicy', 'validatingadmissionpolicies', {
    spec: {
      validations: [{ expression: '((' }],
      matchConstraints: { resourceRules: [{ apiGroups: ['none'], apiVersions: ['*'], operations: ['CREATE'], resources: ['*'] }] },
    },
  }),
  ...cluster('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicyBinding', 'validatingadmissionpolicybindings', {
    spec: { policyName: 'broken', validationActions: [] },
  }),
  ...cluster('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration', 'mutatingwebhookconfigurations', {
    webhooks: [{ name: 'w', rules: [{}], clientConfig: {} }],
  }),
  ...cluster('flowcontrol.apiserver.k8s.io/v1', 'FlowSchema', 'flowschemas', {
    spec: { priorityLevelConfiguration: { name: 'gone' }, rules: [{ subjects: [{ kind: 'Odd' }] }] },
  }),
  ...cluster('flowcontrol.apiserver.k8s.io/v1', 'PriorityLevelConfiguration', 'prioritylevelconfigurations', { spec: { type: 'Limited' } }),
  ...cluster('rbac.authorization.k8s.io/v1', 'ClusterRole', 'clusterroles', {
    rules: [{ verbs: ['*'] }],
    aggregationRule: { clusterRoleSelectors: [selector] },
  }),
  ...cluster('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', 'clusterrolebindings', { roleRef: { kind: 'Odd' } }),
  ...cluster('storage.k8s.io/v1', 'StorageClass', 'storageclasses', {
    metadata: { ...meta('broken', false), annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  }),
  ...cluster('storage.k8s.io/v1', 'CSINode', 'csinodes', { spec: { drivers: [{}] } }),
  ...cluster('storage.k8s.io/v1', 'VolumeAttachment', 'volumeattachments', { spec: { source: {} } }),
  ...cluster('resource.k8s.io/v1', 'ResourceSlice', 'resourceslices', {
    spec: {
      driver: 'd',
      pool: { name: 'p', generation: 1, resourceSliceCount: 1 },
      devices: [{ name: 'x', consumesCounters: [{ counterSet: 'gone', counters: { c: { value: 'odd' } } }] }],
      allNodes: true,
    },
  }),
  ...cluster('resource.k8s.io/v1', 'DeviceClass', 'deviceclasses', { spec: { selectors: [{ cel: { expression: '((' } }] } }),
  ...cluster('certificates.k8s.io/v1', 'CertificateSigningRequest', 'certificatesigningrequests', {
    spec: { request: '####', signerName: 'kubernetes.io/kube-apiserver-client', usages: [] },
    status: { conditions: [{ type: 'Approved', status: 'True' }] },
  }),
  ...cluster('scheduling.k8s.io/v1', 'PriorityClass', 'priorityclasses', { value: 1e30, globalDefault: true }),
  ...cluster('networking.k8s.io/v1', 'ServiceCIDR', 'servicecidrs', { spec: { cidrs: ['here'] } }),
  ...cluster('networking.k8s.io/v1', 'IPAddress', 'ipaddresses', { spec: { parentRef: {} } }),
]

/** A volume of the local-path provisioner without anything that it needs. */
function localVolume() {
  const annotations = { 'pv.kubernetes.io/provisioned-by': 'skiff.dev/local-path' }
  const metadata = { ...meta('pvc-broken', false), annotations, finalizers: ['skiff.dev/local-path'] }
  const object = { apiVersion: 'v1', kind: 'PersistentVolume', metadata, status: { phase: 'Released' } }
  return [{ key: '/registry/persistentvolumes/pvc-broken', path: '/api/v1/persistentvolumes/pvc-broken', object }]
}

function namespaced(apiVersion: string, kind: string, resource: string, rest: object, stored = resource) {
  const prefix = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
  return [{ key: `/registry/${stored}/tenant/broken`, path: `${prefix}/namespaces/tenant/${resource}/broken`, object: of(apiVersion, kind, rest) }]
}

function cluster(apiVersion: string, kind: string, resource: string, rest: object, stored = resource) {
  const prefix = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
  const group = { customresourcedefinitions: 'apiextensions.k8s.io/', apiservices: 'apiregistration.k8s.io/' }[resource] ?? ''
  return [{ key: `/registry/${group}${stored}/broken`, path: `${prefix}/${resource}/broken`, object: of(apiVersion, kind, rest, false) }]
}
