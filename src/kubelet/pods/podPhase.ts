/** The phase of a pod from its container statuses (L3, pure). Upstream: kubelet_pods.go getPhase (v1.36). */
import type { ContainerStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import {
  type FrozenContainer,
  type FrozenPod,
  isRestartableInitContainer,
  isStaticPod,
  restartingAllReason,
  shouldRestart,
  shouldRestartInit,
  statusFinder,
} from '../core/containers.ts'

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed'

interface Counts {
  unknown: number
  running: number
  waiting: number
  stopped: number
  stoppedForGood: number
  succeeded: number
  pendingInit: number
  pendingSidecars: number
  failedInit: boolean
}

/** The exit code of the run that counts: the current one, or the last when the container waits to be started again. */
function exitCodeOf(status: Frozen<ContainerStatus>): number | undefined {
  return status.state?.terminated?.exitCode ?? (status.state?.waiting ? status.lastState?.terminated?.exitCode : undefined)
}

/** The container was removed from the runtime because all containers of the pod restart. */
function isRestarting({ state, lastState }: Frozen<ContainerStatus>): boolean {
  return (state?.terminated ?? lastState?.terminated)?.reason === restartingAllReason
}

function countInit(pod: FrozenPod, container: FrozenContainer, status: Frozen<ContainerStatus> | undefined, counts: Counts): void {
  const exitCode = status && exitCodeOf(status)
  if (status === undefined || exitCode === undefined) counts.pendingInit++
  else if (exitCode !== 0 && !isRestarting(status) && !shouldRestartInit(pod, container, exitCode)) counts.failedInit = true
  else if (exitCode !== 0 && status?.state?.waiting === undefined) counts.pendingInit++
}

function countSidecar(status: Frozen<ContainerStatus> | undefined, counts: Counts): void {
  if (status?.state?.running) {
    if (!status.started) counts.pendingSidecars++
    counts.running++
  } else if (!status || exitCodeOf(status) === undefined) {
    // Stopped sidecars do not take part in the phase.
    if (status?.state?.waiting) counts.waiting++
    else counts.unknown++
    if (status) counts.pendingSidecars++
  }
}

function countRegular(pod: FrozenPod, container: FrozenContainer, status: Frozen<ContainerStatus> | undefined, counts: Counts): void {
  const exitCode = status && exitCodeOf(status)
  if (status?.state?.running) counts.running++
  else if (status && exitCode !== undefined) {
    counts.stopped++
    if (!isRestarting(status) && !shouldRestart(pod, container, exitCode)) counts.stoppedForGood++
    if (status?.state?.terminated && exitCode === 0) counts.succeeded++
  } else if (status?.state?.waiting) counts.waiting++
  else counts.unknown++
}

/**
 * @param statuses of init and regular containers together.
 * @param podIsTerminal nothing of the pod will be started again.
 * @param initialized a regular container has started in the current sandbox.
 */
export function podPhase(pod: FrozenPod, statuses: readonly Frozen<ContainerStatus>[], podIsTerminal: boolean, initialized: boolean): PodPhase {
  const counts: Counts = {
    unknown: 0,
    running: 0,
    waiting: 0,
    stopped: 0,
    stoppedForGood: 0,
    succeeded: 0,
    pendingInit: 0,
    pendingSidecars: 0,
    failedInit: false,
  }
  const statusOf = statusFinder(statuses)
  for (const container of pod.spec.initContainers ?? []) {
    const status = statusOf(container.name)
    if (isRestartableInitContainer(container)) countSidecar(status, counts)
    else countInit(pod, container, status, counts)
  }
  for (const container of pod.spec.containers) countRegular(pod, container, statusOf(container.name), counts)
  const { unknown, running, waiting, stopped, stoppedForGood, succeeded } = counts
  if (counts.failedInit) return 'Failed'
  if (counts.pendingInit > 0 || (counts.pendingSidecars > 0 && !initialized) || waiting > 0) return 'Pending'
  if (running > 0 && unknown === 0) return 'Running'
  if (running > 0 || stopped === 0 || unknown > 0) return 'Pending'
  if (!(podIsTerminal && !isStaticPod(pod)) && stopped !== stoppedForGood) return 'Running'
  return stopped === succeeded ? 'Succeeded' : 'Failed'
}
