/** Counts and measures the kubelet's calls of its runtime (L3). Upstream: kuberuntime/instrumented_services.go, kubelet/metrics/metrics.go (v1.36). */
import { bareMap } from '#base/bareMap'
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import type { PodSandboxConfig } from '#grpc/criTypes'
import type { CallContext, RuntimeService } from '../core/runtimeService.ts'

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
  exec: 'exec',
  attach: 'attach',
  portForward: 'port_forward',
  reopenContainerLog: 'reopen_container_log',
  listContainerStats: 'list_container_stats',
  version: 'version',
  status: 'status',
  listImages: 'list_images',
  imageStatus: 'image_status',
  pullImage: 'pull_image',
  removeImage: 'remove_image',
  imageFilesystem: 'image_fs_info',
} as const satisfies Partial<Record<keyof RuntimeService, string>>

const buckets = Array.from({ length: 14 }, (_, index) => 0.005 * 2.5 ** index)

export function instrumentRuntime(runtime: RuntimeService, metrics: Metrics, clock: Clock): RuntimeService {
  const total = metrics.counter({
    name: 'kubelet_runtime_operations_total',
    help: 'How often the runtime was called, by operation.',
    labels: ['operation_type'],
  })
  const errors = metrics.counter({
    name: 'kubelet_runtime_operations_errors_total',
    help: 'How often a call of the runtime failed, by operation.',
    labels: ['operation_type'],
  })
  const duration = metrics.histogram({
    name: 'kubelet_runtime_operations_duration_seconds',
    help: 'How long the runtime took, by operation, in seconds.',
    labels: ['operation_type'],
    buckets,
  })
  const sandboxDuration = metrics.histogram({
    name: 'kubelet_run_podsandbox_duration_seconds',
    help: 'How long sandboxes took to start, by handler, in seconds.',
    labels: ['runtime_handler'],
  })
  const sandboxErrors = metrics.counter({
    name: 'kubelet_run_podsandbox_errors_total',
    help: 'How many sandboxes could not be started, by handler.',
    labels: ['runtime_handler'],
  })
  const instrumented: Record<string, unknown> = bareMap({ ...runtime })
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
  const runPodSandbox = instrumented.runPodSandbox as RuntimeService['runPodSandbox']
  instrumented.runPodSandbox = async (config: PodSandboxConfig, runtime_handler: string, context?: CallContext) => {
    const startedMs = clock.monotonicMs()
    try {
      return await runPodSandbox(config, runtime_handler, context)
    } catch (error) {
      sandboxErrors.inc({ runtime_handler })
      throw error
    } finally {
      sandboxDuration.observe((clock.monotonicMs() - startedMs) / 1000, { runtime_handler })
    }
  }
  return instrumented as unknown as RuntimeService
}
