/**
 * How many pods and containers there are, as gauges (L3): what the runtime lists, what the workers have, under upstream's names.
 * Upstream: kubelet/pleg/generic.go updateRunningPodAndContainerMetrics, kubelet_pods.go HandlePodCleanups, kubelet/metrics/metrics.go (v1.36).
 */
import type { Metrics } from '#base/metrics'
import type { PodSandbox, RuntimeContainer } from '#grpc/criTypes'
import { type FrozenPod, isStaticPod, isTerminalPhase } from '../core/containers.ts'

/** A pod of the node, and how far it is. */
export interface CountedPod {
  readonly pod: FrozenPod
  readonly lifecycle: 'sync' | 'terminating' | 'terminated'
  /** The pod is deleted from the API or its file and is terminating. */
  readonly orphan: boolean
}

export interface PodGauges {
  runtime(sandboxes: readonly PodSandbox[], containers: readonly RuntimeContainer[]): void
  workers(pods: readonly CountedPod[]): void
}

const containerStates = ['created', 'running', 'exited', 'unknown'] as const
const lifecycles = ['sync', 'terminating', 'terminated'] as const

export function createPodGauges(metrics: Metrics): PodGauges {
  const gauge = (name: string, help: string, labels?: readonly string[]) => metrics.gauge({ name: `kubelet_${name}`, help, ...(labels ? { labels } : {}) })
  const runningPods = gauge('running_pods', 'Number of pods that have a running pod sandbox')
  const runningContainers = gauge('running_containers', 'Number of containers currently running', ['container_state'])
  const desired = gauge('desired_pods', 'The number of pods the kubelet is being instructed to run. static is true if the pod is not from the apiserver.', [
    'static',
  ])
  const active = gauge(
    'active_pods',
    'The number of pods the kubelet considers active and which are being considered when admitting new pods. static is true if the pod is not from the apiserver.',
    ['static'],
  )
  const mirrors = gauge('mirror_pods', 'The number of mirror pods the kubelet will try to create (one per admitted static pod)')
  const ephemeral = gauge('managed_ephemeral_containers', 'Current number of ephemeral containers in pods managed by this kubelet.')
  const working = gauge(
    'working_pods',
    'Number of pods the kubelet is actually running, broken down by lifecycle phase, whether the pod is desired, orphaned, or runtime only (also orphaned), and whether the pod is static. An orphaned pod has been removed from local configuration or force deleted in the API and consumes resources that are not otherwise visible.',
    ['lifecycle', 'config', 'static'],
  )
  return {
    runtime: (sandboxes, containers) => {
      runningPods.set(sandboxes.filter(({ state }) => state === 'SANDBOX_READY').length)
      for (const state of containerStates) {
        const name = `CONTAINER_${state.toUpperCase()}`
        runningContainers.set(containers.filter((container) => container.state === name).length, { container_state: state })
      }
    },
    workers: (pods) => {
      const isActive = ({ pod, lifecycle }: CountedPod) => lifecycle !== 'terminated' && !isTerminalPhase(pod.status?.phase)
      for (const isStatic of [true, false]) {
        const ofKind = pods.filter(({ pod }) => isStaticPod(pod) === isStatic)
        const label = isStatic ? 'true' : ''
        desired.set(ofKind.filter(({ orphan }) => !orphan).length, { static: label })
        active.set(ofKind.filter(isActive).length, { static: label })
        for (const lifecycle of lifecycles) {
          for (const config of ['desired', 'orphan'] as const) {
            const counted = ofKind.filter((one) => one.lifecycle === lifecycle && one.orphan === (config === 'orphan'))
            working.set(counted.length, { lifecycle, config, static: label })
          }
        }
      }
      mirrors.set(pods.filter(({ pod, orphan }) => isStaticPod(pod) && !orphan).length)
      ephemeral.set(pods.reduce((sum, { pod }) => sum + (pod.spec.ephemeralContainers?.length ?? 0), 0))
    },
  }
}
