/** Objects of a cluster with simulated nodes that wait for something, one for each kind that the page explains. */

interface PodParts {
  /** Of simulated pods, without their prefix. */
  readonly annotations?: Readonly<Record<string, string>>
  readonly spec?: object
}

const object = (apiVersion: string, kind: string, name: string, rest: object = {}, metadata: object = {}) => ({
  apiVersion,
  kind,
  metadata: { name, ...metadata },
  ...rest,
})

function template(name: string, { annotations = {}, spec = {} }: PodParts): object {
  const simulated = Object.fromEntries(Object.entries(annotations).map(([key, value]) => [`skiff.dev/simulated-${key}`, value]))
  const main = { name: 'main', image: `example.com/${name}:1`, ...('main' in spec ? (spec.main as object) : {}) }
  const { main: _, ...others } = spec as { main?: object }
  return { metadata: { labels: { app: name }, annotations: simulated }, spec: { containers: [main], ...others } }
}

const workload = (kind: string, name: string, parts: PodParts, spec: object = {}) =>
  object('apps/v1', kind, name, { spec: { ...spec, selector: { matchLabels: { app: name } }, template: template(name, parts) } })

const job = (name: string, parts: PodParts, spec: object) => {
  const { metadata, spec: pod } = template(name, { ...parts, spec: { restartPolicy: 'Never', ...parts.spec } }) as { metadata: object; spec: object }
  return { ...spec, template: { metadata, spec: pod } }
}

const definition = (plural: string) =>
  object('apiextensions.k8s.io/v1', 'CustomResourceDefinition', `${plural}.example.com`, {
    spec: {
      ...{ group: 'example.com', scope: 'Namespaced', names: { plural, kind: 'Widget' } },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  })

const service = (name: string) => object('v1', 'Service', name, { spec: { selector: { app: name }, ports: [{ port: 80 }] } })
const backend = { service: { name: 'empty', port: { number: 80 } } }
const large = { main: { resources: { requests: { cpu: '100' } } } }
const finalizers = ['example.com/keep']

const gate = {
  ...{ name: 'gate.example.com', sideEffects: 'None', admissionReviewVersions: ['v1'], failurePolicy: 'Fail', timeoutSeconds: 1 },
  clientConfig: { service: { namespace: 'default', name: 'gate' } },
  rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['persistentvolumes'], operations: ['DELETE'] }],
}

const items = [
  workload('Deployment', 'pulling', { annotations: { 'pull-error': 'denied' } }),
  workload('Deployment', 'paused', {}, { paused: true }),
  workload('Deployment', 'large', { spec: large }, { replicas: 2 }),
  workload('Deployment', 'crashing', { annotations: { 'exit-after-seconds': '1', 'exit-code': '9' } }),
  workload('StatefulSet', 'ordered', { spec: { nodeSelector: { disk: 'ssd' } } }, { replicas: 2, serviceName: 'ordered' }),
  workload('DaemonSet', 'agents', { spec: { nodeSelector: { agents: 'yes' } } }),
  workload('ReplicaSet', 'robots', { spec: { serviceAccountName: 'robot' } }, { replicas: 1 }),
  object('batch/v1', 'Job', 'suspended', { spec: job('suspended', { annotations: { 'exit-after-seconds': '1' } }, { suspend: true }) }),
  object('batch/v1', 'Job', 'failing', { spec: job('failing', { annotations: { 'exit-code': '7' } }, { backoffLimit: 0 }) }),
  object('batch/v1', 'CronJob', 'nightly', { spec: { schedule: '0 3 * * *', suspend: true, jobTemplate: { spec: job('nightly', {}, {}) } } }),
  object('v1', 'PersistentVolumeClaim', 'data', {
    spec: { storageClassName: 'fast', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  }),
  object('v1', 'Pod', 'almost', { spec: { containers: [{ name: 'main', image: 'example.com/almost:1' }] } }, { labels: { app: 'lone' } }),
  ...['lonely', 'empty'].map(service),
  object('networking.k8s.io/v1', 'Ingress', 'front', { spec: { defaultBackend: backend } }),
  object('policy/v1', 'PodDisruptionBudget', 'unused', { spec: { minAvailable: 0, selector: { matchLabels: { budget: 'yes' } } } }),
  object('autoscaling/v2', 'HorizontalPodAutoscaler', 'large', {
    spec: {
      ...{ scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'large' }, minReplicas: 2, maxReplicas: 4 },
      metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } }],
    },
  }),
  definition('widgets'),
  definition('others'),
  object('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration', 'gate', { webhooks: [gate] }),
  object('v1', 'ConfigMap', 'kept', {}, { finalizers }),
  object('v1', 'Namespace', 'team'),
  object('v1', 'ConfigMap', 'left', {}, { namespace: 'team', finalizers }),
  object('v1', 'ServiceAccount', 'looker'),
  object('rbac.authorization.k8s.io/v1', 'Role', 'looker', {
    rules: [{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['get', 'list', 'watch'] }],
  }),
  object('rbac.authorization.k8s.io/v1', 'RoleBinding', 'looker', {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'looker' },
    subjects: [{ kind: 'ServiceAccount', name: 'looker', namespace: 'default' }],
  }),
]

/** A manifest for `kubectl apply`. */
export const objects = items.map((item) => `---\n${JSON.stringify(item)}\n`).join('')
