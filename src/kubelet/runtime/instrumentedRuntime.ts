/** Counts and times what the kubelet asks of its runtime (L3). Upstream: kuberuntime/instrumented_services.go, kubelet/metrics/metrics.go (v1.36). */
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import type { RuntimeService } from './runtimeService.ts'

/** Upstream's operation names. */
const operations = {
  runPodSandbox: 'run_podsandbox',
  stopPodSandbox: 'stop_podsandbox',
  removePodSandbox: 'remove_podsandbox',
  podSandboxStatus: 'podsandbox_status',
  listPodSandbox: 'list_podsandbox',
  createContainer: 'create_container',
  startContainer: 'start_container',
  stopContainer: 'stop_container',
  removeContainer: 'remove_container',
  containerStatus: 'container_status',
  listContainers: 'list_containers',
  updateContainerResources: 'update_container',
  execSync: 'exec_sync',
  listImages: 'list_images',
  imageStatus: 'image_status',
  pullImage: 'pull_image',
  removeImage: 'remove_image',
} as const satisfies Partial<Record<keyof RuntimeService, string>>

const buckets = [0.005, 0.0125, 0.03125, 0.078125, 0.1953125, 0.48828125, 1.220703125, 3.0517578125, 7.62939453125, 19.073486328125, 47.6837158203125]

export function instrumentRuntime(runtime: RuntimeService, metrics: Metrics, clock: Clock): RuntimeService {
  const total = metrics.counter({
    name: 'kubelet_runtime_operations_total',
    help: 'Cumulative number of runtime operations by operation type.',
    labels: ['operation_type'],
  })
  const errors = metrics.counter({
    name: 'kubelet_runtime_operations_errors_total',
    help: 'Cumulative number of runtime operation errors by operation type.',
    labels: ['operation_type'],
  })
  const duration = metrics.histogram({
    name: 'kubelet_runtime_operations_duration_seconds',
    help: 'Duration in seconds of runtime operations. Broken down by operation type.',
    labels: ['operation_type'],
    buckets,
  })
  const instrumented: Record<string, unknown> = { ...runtime }
  for (const [method, operation_type] of Object.entries(operations)) {
    const call = runtime[method as keyof typeof operations] as (...args: unknown[]) => Promise<unknown>
    instrumented[method] = async (...args: unknown[]) => {
      const startedMs = clock.monotonicMs()
      total.inc({ operation_type })
      try {
        return await call.apply(runtime, args)
      } catch (error) {
        errors.inc({ operation_type })
        throw error
      } finally {
        duration.observe((clock.monotonicMs() - startedMs) / 1000, { operation_type })
      }
    }
  }
  return instrumented as unknown as RuntimeService
}
