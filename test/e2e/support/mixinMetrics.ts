/**
 * Metrics that the rules, alerts and dashboards of kubernetes-mixin read, with the labels that they select or group by: facts about that project, looked up on
 * its main branch, and none of its text. Metrics that Kubernetes v1.36 does not have any more are left out.
 */
export interface MixinMetric {
  readonly metric: string
  /** Selects series, as the mixin does; absent: all. */
  readonly select?: string
  readonly labels?: readonly string[]
  /** The job that scrapes it. */
  readonly job: 'kube-apiserver' | 'kubelet' | 'cadvisor'
  /** Only kubelets of real nodes have it on their page: those of simulated nodes are counted on the API server's. */
  readonly onRealNodes?: true
}

const request = ['verb', 'group', 'version', 'resource', 'subresource', 'scope', 'component']
const container = ['namespace', 'pod', 'container', 'image', 'id']
const kubelet = { job: 'kubelet', onRealNodes: true } as const
const cadvisor = { job: 'cadvisor' } as const
const server = { job: 'kube-apiserver' } as const

export const mixinMetrics: readonly MixinMetric[] = [
  { ...server, metric: 'apiserver_request_total', select: 'verb=~"LIST|GET"', labels: [...request, 'code'] },
  { ...server, metric: 'apiserver_request_total', select: 'verb=~"POST|PUT|PATCH|DELETE|APPLY",code=~"2.."', labels: ['code', 'resource'] },
  { ...server, metric: 'apiserver_request_duration_seconds_bucket', select: 'verb!="WATCH"', labels: ['verb', 'le'] },
  {
    ...server,
    metric: 'apiserver_request_sli_duration_seconds_count',
    select: 'verb=~"LIST|GET",subresource!~"proxy|attach|log|exec|portforward"',
    labels: request,
  },
  { ...server, metric: 'apiserver_request_sli_duration_seconds_bucket', select: 'verb=~"LIST|GET",scope="cluster",le=~"30(\\\\.0)?"', labels: ['le', 'scope'] },
  { ...server, metric: 'apiserver_request_sli_duration_seconds_bucket', select: 'verb=~"POST|PUT|PATCH|DELETE",le=~"1(\\\\.0)?"', labels: ['le', 'verb'] },
  { ...server, metric: 'apiserver_client_certificate_expiration_seconds_count', labels: [] },
  { ...server, metric: 'apiserver_client_certificate_expiration_seconds_bucket', labels: ['le'] },
  { ...server, metric: 'aggregator_unavailable_apiservice', labels: ['name'] },
  { ...server, metric: 'workqueue_adds_total', labels: ['name'] },
  { ...server, metric: 'workqueue_depth', labels: ['name'] },
  { ...server, metric: 'workqueue_queue_duration_seconds_bucket', labels: ['name', 'le'] },
  { ...server, metric: 'kubernetes_build_info', labels: ['git_version'] },
  { ...server, metric: 'process_resident_memory_bytes' },
  { ...server, metric: 'process_cpu_seconds_total' },
  { ...server, metric: 'scheduler_scheduling_algorithm_duration_seconds_bucket', labels: ['le'] },
  { ...server, metric: 'scheduler_scheduling_attempt_duration_seconds_bucket', labels: ['le', 'profile', 'result'] },
  { ...kubelet, metric: 'kubelet_node_name', labels: ['node'] },
  { ...kubelet, metric: 'kubelet_running_pods' },
  { ...kubelet, metric: 'kubelet_running_containers', select: 'container_state="running"', labels: ['container_state'] },
  { ...kubelet, metric: 'volume_manager_total_volumes', select: 'state="actual_state_of_world"', labels: ['plugin_name', 'state'] },
  { ...kubelet, metric: 'volume_manager_total_volumes', select: 'state="desired_state_of_world"', labels: ['plugin_name', 'state'] },
  { ...kubelet, metric: 'kubelet_runtime_operations_total', labels: ['operation_type'] },
  { ...kubelet, metric: 'kubelet_runtime_operations_duration_seconds_bucket', labels: ['operation_type', 'le'] },
  { ...kubelet, metric: 'kubelet_pod_start_duration_seconds_bucket', labels: ['le'] },
  { ...kubelet, metric: 'kubelet_pod_worker_duration_seconds_bucket', labels: ['operation_type', 'le'] },
  { ...kubelet, metric: 'storage_operation_duration_seconds_bucket', labels: ['operation_name', 'volume_plugin', 'status', 'le'] },
  { ...kubelet, metric: 'kubelet_cgroup_manager_duration_seconds_bucket', labels: ['operation_type', 'le'] },
  { ...kubelet, metric: 'kubelet_pleg_relist_duration_seconds_bucket', labels: ['le'] },
  { ...kubelet, metric: 'kubelet_pleg_relist_interval_seconds_bucket', labels: ['le'] },
  { ...kubelet, metric: 'process_resident_memory_bytes' },
  { ...cadvisor, metric: 'container_cpu_usage_seconds_total', select: 'image!=""', labels: container },
  { ...cadvisor, metric: 'container_memory_working_set_bytes', select: 'image!=""', labels: container },
  { ...cadvisor, metric: 'container_memory_rss', select: 'image!=""', labels: container },
  { ...cadvisor, metric: 'container_memory_cache', select: 'image!=""', labels: container },
  { ...cadvisor, metric: 'container_memory_swap', select: 'image!=""', labels: container },
]

/** Expressions of our own that join those metrics as the mixin's do: by instance and node, by pod, over bounds and codes. Each must have a value. */
export const joins: readonly { readonly expression: string; readonly onRealNodes?: true }[] = [
  { expression: '1 - sum(rate(apiserver_request_sli_duration_seconds_bucket{le=~"1|1.0"}[1m])) / sum(rate(apiserver_request_sli_duration_seconds_count[1m]))' },
  { expression: 'histogram_quantile(0.9, sum by (le, verb) (rate(apiserver_request_duration_seconds_bucket{verb!="WATCH"}[1m])))' },
  { expression: 'max by (name) (aggregator_unavailable_apiservice) < 1' },
  { expression: 'count(count by (git_version) (kubernetes_build_info))' },
  { expression: 'sum by (name) (workqueue_depth) <= on (name) sum by (name) (workqueue_adds_total)' },
  {
    expression:
      'sum by (namespace, pod) (container_memory_working_set_bytes{container!=""}) / on (namespace, pod) sum by (namespace, pod) (container_memory_rss{container!=""} + 1)',
  },
  { expression: 'sum by (node) (kubelet_running_pods * on (instance) group_left (node) kubelet_node_name)', onRealNodes: true },
  {
    expression:
      'histogram_quantile(0.99, sum by (instance, le) (rate(kubelet_pleg_relist_duration_seconds_bucket[1m])) * on (instance) group_left (node) kubelet_node_name)',
    onRealNodes: true,
  },
]
