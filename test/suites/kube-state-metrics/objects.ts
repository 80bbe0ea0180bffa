/** Objects of the kinds that kube-state-metrics shows, and the samples that it makes of them. */
const labels = { app: 'web' }
const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'example.com/web:1.0', resources: { requests: { cpu: '100m' } } }] } }
const jobTemplate = { spec: { template: { spec: { ...template.spec, restartPolicy: 'Never' } } } }
const webhook = (name: string) => ({
  name,
  clientConfig: { url: 'https://127.0.0.1:1/' },
  rules: [{ apiGroups: ['shop.example.com'], apiVersions: ['v1'], resources: ['carts'], operations: ['CREATE'] }],
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
})
const selector = { matchLabels: labels }

function object(apiVersion: string, kind: string, name: string, rest: object = {}): object {
  return { apiVersion, kind, metadata: { name }, ...rest }
}

export const objects: readonly object[] = [
  object('apps/v1', 'Deployment', 'web', { spec: { replicas: 2, selector, template } }),
  object('apps/v1', 'StatefulSet', 'db', { spec: { replicas: 1, serviceName: 'web', selector, template } }),
  object('apps/v1', 'DaemonSet', 'agent', { spec: { selector, template } }),
  object('v1', 'ReplicationController', 'old', { spec: { replicas: 1, selector: labels, template } }),
  object('batch/v1', 'Job', 'once', jobTemplate),
  object('batch/v1', 'CronJob', 'nightly', { spec: { schedule: '0 3 * * *', jobTemplate } }),
  object('v1', 'Service', 'web', { spec: { selector: labels, ports: [{ port: 80 }] } }),
  object('v1', 'ConfigMap', 'settings', { data: { a: 'b' } }),
  object('v1', 'Secret', 'token', { stringData: { a: 'b' } }),
  object('v1', 'PersistentVolume', 'disk', {
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/tmp/disk' }, storageClassName: 'manual' },
  }),
  object('v1', 'PersistentVolumeClaim', 'data', {
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'manual', resources: { requests: { storage: '1Gi' } } },
  }),
  object('v1', 'ResourceQuota', 'quota', { spec: { hard: { pods: '100' } } }),
  object('v1', 'LimitRange', 'limits', { spec: { limits: [{ type: 'Container', max: { memory: '1Gi' } }] } }),
  object('autoscaling/v2', 'HorizontalPodAutoscaler', 'web', {
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
      minReplicas: 2,
      maxReplicas: 5,
      metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } }],
    },
  }),
  object('policy/v1', 'PodDisruptionBudget', 'web', { spec: { minAvailable: 1, selector } }),
  object('networking.k8s.io/v1', 'Ingress', 'web', {
    spec: {
      rules: [{ host: 'web.example.com', http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }] } }],
    },
  }),
  object('networking.k8s.io/v1', 'NetworkPolicy', 'closed', { spec: { podSelector: {}, policyTypes: ['Ingress'] } }),
  object('storage.k8s.io/v1', 'StorageClass', 'manual', { provisioner: 'kubernetes.io/no-provisioner' }),
  object('storage.k8s.io/v1', 'VolumeAttachment', 'attached', {
    spec: { attacher: 'example.com', nodeName: 'none', source: { persistentVolumeName: 'disk' } },
  }),
  object('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration', 'carts', { webhooks: [webhook('m.example.com')] }),
  object('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration', 'carts', { webhooks: [webhook('v.example.com')] }),
]

/** One sample of each family: its name, labels that it has, and its value; absent: any. */
export const samples: readonly (readonly [family: string, labels: Readonly<Record<string, string>>, value?: number])[] = [
  ['kube_node_info', { kubelet_version: 'v1.36.0' }, 1],
  ['kube_node_status_condition', { condition: 'Ready', status: 'true' }, 1],
  ['kube_node_status_capacity', { resource: 'pods' }],
  ['kube_namespace_status_phase', { namespace: 'default', phase: 'Active' }, 1],
  ['kube_deployment_status_replicas_available', { deployment: 'web' }, 2],
  ['kube_replicaset_owner', { owner_kind: 'Deployment', owner_name: 'web' }, 1],
  ['kube_statefulset_status_replicas_ready', { statefulset: 'db' }, 1],
  ['kube_daemonset_status_number_ready', { daemonset: 'agent' }, 2],
  ['kube_replicationcontroller_status_ready_replicas', { replicationcontroller: 'old' }, 1],
  ['kube_job_info', { job_name: 'once' }, 1],
  ['kube_cronjob_info', { cronjob: 'nightly', schedule: '0 3 * * *' }, 1],
  ['kube_pod_info', { created_by_kind: 'ReplicaSet' }, 1],
  ['kube_pod_status_phase', { phase: 'Running' }, 1],
  ['kube_pod_container_resource_requests', { resource: 'cpu', unit: 'core' }, 0.1],
  ['kube_pod_owner', { owner_kind: 'StatefulSet', owner_name: 'db' }, 1],
  ['kube_service_info', { service: 'web' }, 1],
  ['kube_endpointslice_info', { addresstype: 'IPv4' }, 1],
  ['kube_configmap_info', { configmap: 'settings' }, 1],
  ['kube_secret_info', { secret: 'token' }, 1],
  ['kube_persistentvolume_status_phase', { persistentvolume: 'disk', phase: 'Bound' }, 1],
  ['kube_persistentvolumeclaim_status_phase', { persistentvolumeclaim: 'data', phase: 'Bound' }, 1],
  ['kube_resourcequota', { resourcequota: 'quota', type: 'hard' }, 100],
  ['kube_limitrange', { limitrange: 'limits', constraint: 'max' }],
  ['kube_horizontalpodautoscaler_spec_max_replicas', { horizontalpodautoscaler: 'web' }, 5],
  ['kube_poddisruptionbudget_status_desired_healthy', { poddisruptionbudget: 'web' }],
  ['kube_ingress_path', { ingress: 'web', host: 'web.example.com', service_name: 'web' }, 1],
  ['kube_networkpolicy_spec_ingress_rules', { networkpolicy: 'closed' }, 0],
  ['kube_storageclass_info', { storageclass: 'manual' }, 1],
  ['kube_volumeattachment_info', { volumeattachment: 'attached' }, 1],
  ['kube_mutatingwebhookconfiguration_info', { mutatingwebhookconfiguration: 'carts' }, 1],
  ['kube_validatingwebhookconfiguration_info', { validatingwebhookconfiguration: 'carts' }, 1],
  ['kube_lease_renew_time', {}],
]
