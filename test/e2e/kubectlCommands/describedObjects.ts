/** One object of each kind that describe is asked about and that a cluster does not bring with it. */
const example = 'describing.example'
const labels = (app: string) => ({ metadata: { labels: { app } } })
const containers = [{ name: 'main', image: 'main:1' }]
const made = (apiVersion: string, kind: string, name: string, rest: object = {}) => ({ apiVersion, kind, metadata: { name }, ...rest })
const workload = (kind: string, name: string, rest: object = {}) =>
  made('apps/v1', kind, name, {
    spec: { ...rest, selector: { matchLabels: { app: name } }, template: { ...labels(name), spec: { containers } } },
  })
const webhook = {
  name: `hook.${example}`,
  clientConfig: { url: 'https://127.0.0.1:1/' },
  failurePolicy: 'Ignore',
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  rules: [{ apiGroups: [example], apiVersions: ['v1'], resources: ['nothing'], operations: ['CREATE'] }],
}
const matched = { resourceRules: [{ apiGroups: [example], apiVersions: ['v1'], resources: ['nothing'], operations: ['CREATE'] }] }
const subject = { kind: 'User', name: 'jane', apiGroup: 'rbac.authorization.k8s.io' }
const devices = { devices: { requests: [{ name: 'one', exactly: { deviceClassName: example } }] } }
// A certificate request for CN=jane (Ed25519), made once with openssl; it is never signed.
const certificateRequest =
  'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlHT01FSUNBUUF3RHpFTk1Bc0dBMVVFQXd3RWFtRnVaVEFxTUFVR0F5dGxjQU1oQUZQUjhnUFl0cDRPREsyZgpCcndNYitKc04xYzJZV0lXOWRFcWx2WEZIMWdlb0FBd0JRWURLMlZ3QTBFQXVtUHhDUms4WklsQTFVa1FhMjlNCjR1OXNsaVhYY29CbkcyU2g1M1p2S3k0enlYUVE3dXJYYks1RFd1U2ZZS0RzSDRIUFNxSWxOWDhkcnJnWEViSVQKQUE9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K'

const core = [
  made('v1', 'ConfigMap', 'settings', { data: { a: '1' } }),
  made('v1', 'LimitRange', 'limits', { spec: { limits: [{ type: 'Container', max: { cpu: '2' }, default: { cpu: '1' }, defaultRequest: { cpu: '100m' } }] } }),
  made('v1', 'PersistentVolumeClaim', 'claim', {
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'describing', resources: { requests: { storage: '1Gi' } } },
  }),
  made('v1', 'PersistentVolume', 'describing-volume', {
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], persistentVolumeReclaimPolicy: 'Retain', hostPath: { path: '/data' } },
  }),
  made('v1', 'Pod', 'single', {
    spec: { containers: [{ ...containers[0], resources: { limits: { memory: '64Mi' }, requests: { memory: '32Mi' } } }] },
  }),
  made('v1', 'PodTemplate', 'template', { template: { ...labels('template'), spec: { containers } } }),
  made('v1', 'ReplicationController', 'old', { spec: { replicas: 1, selector: { app: 'old' }, template: { ...labels('old'), spec: { containers } } } }),
  made('v1', 'Secret', 'word', { data: { password: 'c2VjcmV0' } }),
  made('v1', 'ServiceAccount', 'robot'),
  { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', labels: { app: 'web' } }, spec: { selector: { app: 'web' }, ports: [{ port: 80 }] } },
]

const workloads = [
  workload('Deployment', 'web'),
  workload('DaemonSet', 'agent'),
  workload('StatefulSet', 'store', { serviceName: 'store' }),
  made('batch/v1', 'CronJob', 'tick', {
    spec: { schedule: '0 0 1 1 *', jobTemplate: { spec: { template: { spec: { containers, restartPolicy: 'Never' } } } } },
  }),
  made('batch/v1', 'Job', 'once', { spec: { template: { spec: { containers, restartPolicy: 'Never' } } } }),
  made('autoscaling/v2', 'HorizontalPodAutoscaler', 'web', {
    spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, minReplicas: 1, maxReplicas: 3 },
  }),
  made('policy/v1', 'PodDisruptionBudget', 'least', { spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } } }),
]

const admission = [
  made('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration', example, { webhooks: [webhook] }),
  made('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration', example, { webhooks: [webhook] }),
  made('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicy', example, {
    spec: { failurePolicy: 'Ignore', matchConstraints: matched, validations: [{ expression: 'true' }] },
  }),
  made('admissionregistration.k8s.io/v1', 'ValidatingAdmissionPolicyBinding', example, { spec: { policyName: example, validationActions: ['Deny'] } }),
  made('admissionregistration.k8s.io/v1', 'MutatingAdmissionPolicy', example, {
    spec: {
      failurePolicy: 'Ignore',
      reinvocationPolicy: 'Never',
      matchConstraints: matched,
      mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Object{}' } }],
    },
  }),
  made('admissionregistration.k8s.io/v1', 'MutatingAdmissionPolicyBinding', example, { spec: { policyName: example } }),
]

const extensions = [
  made('apiextensions.k8s.io/v1', 'CustomResourceDefinition', `things.${example}`, {
    spec: {
      group: example,
      scope: 'Namespaced',
      names: { plural: 'things', kind: 'Thing' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  }),
  made('certificates.k8s.io/v1', 'CertificateSigningRequest', 'describing', {
    spec: { request: certificateRequest, signerName: 'example.com/none', usages: ['client auth'] },
  }),
  made('flowcontrol.apiserver.k8s.io/v1', 'PriorityLevelConfiguration', 'describing', {
    spec: { type: 'Limited', limited: { nominalConcurrencyShares: 5, limitResponse: { type: 'Reject' } } },
  }),
  made('flowcontrol.apiserver.k8s.io/v1', 'FlowSchema', 'describing', {
    spec: {
      matchingPrecedence: 9000,
      priorityLevelConfiguration: { name: 'describing' },
      rules: [{ subjects: [{ kind: 'User', user: { name: 'jane' } }], nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz'] }] }],
    },
  }),
]

const networking = [
  made('networking.k8s.io/v1', 'IngressClass', 'describing', { spec: { controller: 'example.com/ingress' } }),
  made('networking.k8s.io/v1', 'Ingress', 'shop', {
    spec: {
      ingressClassName: 'describing',
      rules: [{ host: 'shop.example', http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }] } }],
    },
  }),
  made('networking.k8s.io/v1', 'NetworkPolicy', 'closed', {
    spec: { podSelector: { matchLabels: { app: 'web' } }, policyTypes: ['Ingress'], ingress: [{ ports: [{ port: 80 }] }] },
  }),
]

const others = [
  made('node.k8s.io/v1', 'RuntimeClass', 'describing', { handler: 'special' }),
  made('rbac.authorization.k8s.io/v1', 'Role', 'one', { rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] }),
  made('rbac.authorization.k8s.io/v1', 'RoleBinding', 'one', {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'one' },
    subjects: [subject],
  }),
  made('resource.k8s.io/v1', 'DeviceClass', example, { spec: {} }),
  made('resource.k8s.io/v1', 'ResourceClaim', 'claim', { spec: devices }),
  made('resource.k8s.io/v1', 'ResourceClaimTemplate', 'template', { spec: { spec: devices } }),
  made('resource.k8s.io/v1', 'ResourceSlice', 'describing', {
    spec: { driver: example, nodeName: 'e2e-commands-sim-1', pool: { name: 'pool', generation: 1, resourceSliceCount: 1 }, devices: [{ name: 'one' }] },
  }),
  made('storage.k8s.io/v1', 'CSIDriver', example, { spec: {} }),
  made('storage.k8s.io/v1', 'CSINode', 'describing', { spec: { drivers: [] } }),
  made('storage.k8s.io/v1', 'StorageClass', 'describing', { provisioner: 'example.com/none', volumeBindingMode: 'WaitForFirstConsumer' }),
  made('storage.k8s.io/v1', 'CSIStorageCapacity', 'capacity', { storageClassName: 'describing', nodeTopology: {} }),
  made('storage.k8s.io/v1', 'VolumeAttachment', 'describing', {
    spec: { attacher: example, nodeName: 'e2e-commands-sim-1', source: { persistentVolumeName: 'describing-volume' } },
  }),
  made('storage.k8s.io/v1', 'VolumeAttributesClass', 'describing', { driverName: example, parameters: { speed: 'high' } }),
]

export const describedObjects: readonly object[] = [...core, ...workloads, ...admission, ...extensions, ...networking, ...others]
