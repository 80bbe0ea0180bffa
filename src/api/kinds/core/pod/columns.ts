/**
 * The columns of `kubectl get pods` (L1). STATUS is the most telling of phase, reason and the containers' states.
 * Upstream: printers/internalversion printPod (v1.36).
 */
import type { ContainerStatus, Pod } from '#api/gen/types/core.v1'
import { isConditionTrue } from '#api/machinery/conditions'
import { humanDuration } from '#api/machinery/duration'
import type { Frozen } from '#api/machinery/meta'
import { parseTime } from '#base/time'
import { ageColumn, nameColumn, none, text } from '../../columns.ts'
import type { Column } from '../../defineKind.ts'

export const podColumns: readonly Column<Pod>[] = [
  nameColumn,
  text<Pod>('Ready', (pod) => {
    const { ready, total } = podSummary(pod)
    return `${ready}/${total}`
  }),
  text<Pod>('Status', (pod) => podSummary(pod).reason),
  text<Pod>('Restarts', restartsText),
  ageColumn,
  text<Pod>('IP', (pod) => pod.status?.podIP || pod.status?.podIPs?.[0]?.ip || none, 1),
  text<Pod>('Node', (pod) => pod.spec?.nodeName || none, 1),
  text<Pod>('Nominated Node', (pod) => pod.status?.nominatedNodeName || none, 1),
  text<Pod>('Readiness Gates', gatesText, 1),
]

export interface PodSummary {
  readonly ready: number
  readonly total: number
  readonly restarts: number
  /** When a container last restarted; undefined when none did. */
  readonly lastRestartMs: number | undefined
  /** The STATUS cell. */
  readonly reason: string
}

/** What the READY, STATUS and RESTARTS cells are made of. */
export function podSummary(pod: Frozen<Pod>): PodSummary {
  const spec = pod.spec ?? { containers: [] }
  const status = pod.status ?? {}
  const sidecars = new Set((spec.initContainers ?? []).filter((container) => container.restartPolicy === 'Always').map((container) => container.name))
  const total = (spec.containers ?? []).length + sidecars.size
  const gated = status.conditions?.some((condition) => condition.type === 'PodScheduled' && condition.reason === 'SchedulingGated')
  let reason = gated ? 'SchedulingGated' : status.reason || status.phase || ''

  const init = initSummary(pod, sidecars)
  let { ready, restarts, lastRestartMs } = init
  if (init.reason !== undefined) reason = init.reason
  if (init.reason === undefined || isConditionTrue(status.conditions, 'Initialized')) {
    restarts = init.sidecarRestarts
    lastRestartMs = init.sidecarLastRestartMs
    let hasRunning = false
    for (const container of [...(status.containerStatuses ?? [])].reverse()) {
      restarts += container.restartCount
      lastRestartMs = latest(lastRestartMs, restartedMs(container))
      const { waiting, terminated, running } = container.state ?? {}
      if (waiting?.reason) reason = waiting.reason
      else if (terminated) reason = terminated.reason || exitText(terminated)
      else if (container.ready && running) {
        hasRunning = true
        ready++
      }
    }
    // One container is done while another runs: the pod is running, whatever the order of its containers.
    if (reason === 'Completed' && hasRunning) reason = isConditionTrue(status.conditions, 'Ready') ? 'Running' : 'NotReady'
  }
  if (pod.metadata.deletionTimestamp && status.reason === 'NodeLost') reason = 'Unknown'
  else if (pod.metadata.deletionTimestamp && status.phase !== 'Failed' && status.phase !== 'Succeeded') reason = 'Terminating'
  return { ready, total, restarts, lastRestartMs, reason }
}

interface InitSummary {
  readonly ready: number
  readonly restarts: number
  readonly lastRestartMs: number | undefined
  readonly sidecarRestarts: number
  readonly sidecarLastRestartMs: number | undefined
  /** Set while the pod is initializing. */
  readonly reason: string | undefined
}

function initSummary(pod: Frozen<Pod>, sidecars: ReadonlySet<string>): InitSummary {
  const statuses = pod.status?.initContainerStatuses ?? []
  let ready = 0
  let restarts = 0
  let sidecarRestarts = 0
  let lastRestartMs: number | undefined
  let sidecarLastRestartMs: number | undefined
  for (const [i, container] of statuses.entries()) {
    restarts += container.restartCount
    lastRestartMs = latest(lastRestartMs, restartedMs(container))
    const sidecar = sidecars.has(container.name)
    if (sidecar) {
      sidecarRestarts += container.restartCount
      sidecarLastRestartMs = latest(sidecarLastRestartMs, restartedMs(container))
    }
    const { waiting, terminated } = container.state ?? {}
    if (terminated?.exitCode === 0) continue
    if (sidecar && container.started) {
      if (container.ready) ready++
      continue
    }
    const waits = waiting?.reason && waiting.reason !== 'PodInitializing' ? waiting.reason : undefined
    const reason = terminated
      ? `Init:${terminated.reason || exitText(terminated)}`
      : waits !== undefined
        ? `Init:${waits}`
        : `Init:${i}/${(pod.spec.initContainers ?? []).length}`
    return { ready, restarts, lastRestartMs, sidecarRestarts, sidecarLastRestartMs, reason }
  }
  return { ready, restarts, lastRestartMs, sidecarRestarts, sidecarLastRestartMs, reason: undefined }
}

function exitText(terminated: { readonly signal?: number | undefined; readonly exitCode: number }): string {
  return terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode}`
}

function restartedMs(container: Frozen<ContainerStatus>): number | undefined {
  const at = container.lastState?.terminated?.finishedAt
  return at ? parseTime(at) : undefined
}

function latest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.max(a, b)
}

function restartsText(pod: Frozen<Pod>, nowMs: number): string {
  const { restarts, lastRestartMs } = podSummary(pod)
  return restarts > 0 && lastRestartMs !== undefined ? `${restarts} (${humanDuration(nowMs - lastRestartMs)} ago)` : String(restarts)
}

function gatesText(pod: Frozen<Pod>): string {
  const gates = pod.spec?.readinessGates ?? []
  if (gates.length === 0) return none
  const met = gates.filter((gate) => isConditionTrue(pod.status?.conditions, gate.conditionType)).length
  return `${met}/${gates.length}`
}
