/**
 * The STABLE and BETA metrics of Kubernetes v1.36 (L5), written by scripts/documentedMetrics.mjs. A line: name, stability, type, the components that
 * serve it (a: API server, c: controller manager, k: kubelet, p: proxy, s: scheduler), path, labels, the version that deprecated it.
 */
const lines = `
apiserver_admission_controller_admission_duration_seconds STABLE Histogram a /metrics name,operation,rejected,type
apiserver_admission_step_admission_duration_seconds STABLE Histogram a /metrics operation,rejected,type
apiserver_admission_webhook_admission_duration_seconds STABLE Histogram a /metrics name,operation,rejected,type
apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds BETA Gauge a /metrics apiserver_id_hash,status
apiserver_authentication_config_controller_automatic_reloads_total BETA Counter a /metrics apiserver_id_hash,status
apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds BETA Gauge a /metrics apiserver_id_hash,status
apiserver_authorization_config_controller_automatic_reloads_total BETA Counter a /metrics apiserver_id_hash,status
apiserver_cel_compilation_duration_seconds BETA Histogram a /metrics -
apiserver_cel_evaluation_duration_seconds BETA Histogram a /metrics -
apiserver_current_inflight_requests STABLE Gauge a /metrics request_kind
apiserver_flowcontrol_current_executing_requests BETA Gauge a /metrics flow_schema,priority_level
apiserver_flowcontrol_current_executing_seats BETA Gauge a /metrics flow_schema,priority_level
apiserver_flowcontrol_current_inqueue_requests BETA Gauge a /metrics flow_schema,priority_level
apiserver_flowcontrol_dispatched_requests_total BETA Counter a /metrics flow_schema,priority_level
apiserver_flowcontrol_nominal_limit_seats BETA Gauge a /metrics priority_level
apiserver_flowcontrol_rejected_requests_total BETA Counter a /metrics flow_schema,priority_level,reason
apiserver_flowcontrol_request_wait_duration_seconds BETA Histogram a /metrics execute,flow_schema,priority_level
apiserver_longrunning_requests STABLE Gauge a /metrics component,group,resource,scope,subresource,verb,version
apiserver_request_duration_seconds STABLE Histogram a /metrics component,dry_run,group,resource,scope,subresource,verb,version
apiserver_request_total STABLE Counter a /metrics code,component,dry_run,group,resource,scope,subresource,verb,version
apiserver_requested_deprecated_apis STABLE Gauge a /metrics group,removed_release,resource,subresource,version
apiserver_response_sizes STABLE Histogram a /metrics component,group,resource,scope,subresource,verb,version
apiserver_storage_events_received_total BETA Counter a /metrics group,resource
apiserver_storage_objects STABLE Gauge a /metrics resource 1.34.0
apiserver_storage_size_bytes STABLE Custom a /metrics storage_cluster_id
apiserver_validating_admission_policy_check_duration_seconds BETA Histogram a /metrics enforcement_action,error_type,policy,policy_binding
apiserver_validating_admission_policy_check_total BETA Counter a /metrics enforcement_action,error_type,policy,policy_binding
apiserver_validation_declarative_validation_mismatch_total BETA Counter a /metrics -
apiserver_validation_declarative_validation_panic_total BETA Counter a /metrics -
apiserver_watch_list_duration_seconds BETA Histogram a /metrics group,resource,scope,version
container_cpu_usage_seconds_total STABLE Custom k /metrics/resource container,namespace,pod
container_memory_working_set_bytes STABLE Custom k /metrics/resource container,namespace,pod
container_start_time_seconds STABLE Custom k /metrics/resource container,namespace,pod
cronjob_controller_job_creation_skew_duration_seconds STABLE Histogram c /metrics -
disabled_metrics_total BETA Counter acpsk /metrics -
hidden_metrics_total BETA Counter acpsk /metrics -
job_controller_job_pods_finished_total STABLE Counter c /metrics completion_mode,result
job_controller_job_sync_duration_seconds STABLE Histogram c /metrics action,completion_mode,result
job_controller_job_syncs_total STABLE Counter c /metrics action,completion_mode,result
job_controller_jobs_finished_total STABLE Counter c /metrics completion_mode,reason,result
kube_pod_resource_limit STABLE Custom s /metrics namespace,node,pod,priority,resource,scheduler,unit
kube_pod_resource_request STABLE Custom s /metrics namespace,node,pod,priority,resource,scheduler,unit
kubelet_image_volume_mounted_errors_total BETA Counter k /metrics -
kubelet_image_volume_mounted_succeed_total BETA Counter k /metrics -
kubelet_image_volume_requested_total BETA Counter k /metrics -
kubernetes_build_info BETA Gauge acpsk /metrics build_date,compiler,git_commit,git_tree_state,git_version,go_version,major,minor,platform
kubernetes_feature_enabled BETA Gauge acpsk /metrics name,stage
kubernetes_healthcheck STABLE Gauge acpsk /metrics/slis name,type
kubernetes_healthchecks_total STABLE Counter acpsk /metrics/slis name,status,type
node_collector_evictions_total STABLE Counter c /metrics zone
node_cpu_usage_seconds_total STABLE Custom k /metrics/resource -
node_memory_working_set_bytes STABLE Custom k /metrics/resource -
pod_cpu_usage_seconds_total STABLE Custom k /metrics/resource namespace,pod
pod_memory_working_set_bytes STABLE Custom k /metrics/resource namespace,pod
prober_probe_total BETA Counter k /metrics/probes container,namespace,pod,pod_uid,probe_type,result
registered_metrics_total BETA Counter acpsk /metrics deprecated_version,stability_level
resource_scrape_error STABLE Custom k /metrics/resource -
running_managed_controllers BETA Gauge acpsk /metrics manager,name
scheduler_framework_extension_point_duration_seconds STABLE Histogram s /metrics extension_point,profile,status
scheduler_pending_pods STABLE Gauge s /metrics queue
scheduler_pod_scheduling_attempts STABLE Histogram s /metrics -
scheduler_pod_scheduling_sli_duration_seconds BETA Histogram s /metrics attempts
scheduler_preemption_attempts_total STABLE Counter s /metrics -
scheduler_preemption_victims STABLE Histogram s /metrics -
scheduler_queue_incoming_pods_total STABLE Counter s /metrics event,queue
scheduler_schedule_attempts_total STABLE Counter s /metrics profile,result
scheduler_scheduling_attempt_duration_seconds STABLE Histogram s /metrics profile,result
workqueue_adds_total BETA Counter acpsk /metrics name
workqueue_depth BETA Gauge acpsk /metrics name
workqueue_longest_running_processor_seconds BETA Gauge acpsk /metrics name
workqueue_queue_duration_seconds BETA Histogram acpsk /metrics name
workqueue_retries_total BETA Counter acpsk /metrics name
workqueue_unfinished_work_seconds BETA Gauge acpsk /metrics name
workqueue_work_duration_seconds BETA Histogram acpsk /metrics name`

export interface DocumentedMetric {
  readonly name: string
  readonly stability: 'STABLE' | 'BETA'
  /** Custom: written at each scrape. */
  readonly type: 'Counter' | 'Gauge' | 'Histogram' | 'Custom'
  readonly components: string
  readonly path: string
  readonly labels: readonly string[]
  readonly deprecatedVersion?: string | undefined
}

export const documentedMetrics: ReadonlyMap<string, DocumentedMetric> = new Map(
  lines
    .trim()
    .split('\n')
    .map((line) => {
      const [name = '', stability, type, components, path, labels = '', deprecatedVersion] = line.split(' ')
      return [name, { name, stability, type, components, path, labels: labels === '-' ? [] : labels.split(','), deprecatedVersion } as DocumentedMetric]
    }),
)
