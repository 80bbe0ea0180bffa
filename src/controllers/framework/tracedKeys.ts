/** Which resource the keys of a queue name (L3): the trace follows objects, and a reconciler knows only keys. */
import { bareMap } from '#base/bareMap'

/** By the queue's name. Queues whose keys name nothing that a user sees are left out: they are not traced. */
export const resourceOfQueue: Readonly<Record<string, string>> = bareMap({
  certificate: 'certificatesigningrequests',
  claims: 'persistentvolumeclaims',
  cronjob: 'cronjobs',
  daemonset: 'daemonsets',
  deployment: 'deployments',
  disruption: 'poddisruptionbudgets',
  endpoint: 'services',
  endpoint_slice: 'services',
  ephemeral_volume: 'pods',
  horizontalpodautoscaler: 'horizontalpodautoscalers',
  job: 'jobs',
  local_path_claims: 'persistentvolumeclaims',
  namespace: 'namespaces',
  node_lifecycle_controller: 'nodes',
  pvcprotection: 'persistentvolumeclaims',
  pvprotection: 'persistentvolumes',
  replicaset: 'replicasets',
  replicationmanager: 'replicationcontrollers',
  resourcequota_primary: 'resourcequotas',
  service: 'services',
  statefulset: 'statefulsets',
  ttl_jobs_to_delete: 'jobs',
  volume_expand: 'persistentvolumeclaims',
  volumes: 'persistentvolumes',
})
