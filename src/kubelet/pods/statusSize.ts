/**
 * Cuts a pod's status that the API server refuses as too large (L3), so that the pod can still start, end and be deleted. Each level leaves out more; phase,
 * conditions and the state of every container stay as long as the server takes them. Upstream sends the whole status again and again (v1.36).
 */
import type { ContainerState, ContainerStatus, PodStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

/** Level 0 leaves nothing out. */
export const maxCutLevel = 4

type Cut = (status: Frozen<ContainerStatus>) => Frozen<ContainerStatus>

/** What the levels from 1 on leave of a container's status. The last level leaves no container's. */
const cuts: readonly Cut[] = [withoutMessages, withoutDetails, onlyState]

export function cutStatus(status: Frozen<PodStatus>, level: number): Frozen<PodStatus> {
  if (level <= 0) return status
  const { containerStatuses, initContainerStatuses, ephemeralContainerStatuses, ...rest } = status
  const cut = cuts[level - 1]
  if (!cut) return rest
  return {
    ...rest,
    ...(containerStatuses && { containerStatuses: containerStatuses.map(cut) }),
    ...(initContainerStatuses && { initContainerStatuses: initContainerStatuses.map(cut) }),
    ...(ephemeralContainerStatuses && { ephemeralContainerStatuses: ephemeralContainerStatuses.map(cut) }),
  }
}

function withoutMessages({ state, lastState, ...rest }: Frozen<ContainerStatus>): Frozen<ContainerStatus> {
  return { ...rest, ...(state && { state: stateWithoutMessage(state) }), ...(lastState && { lastState: stateWithoutMessage(lastState) }) }
}

function stateWithoutMessage({ waiting, running, terminated }: Frozen<ContainerState>): Frozen<ContainerState> {
  if (waiting) return { waiting: without(waiting, 'message') }
  return terminated ? { terminated: without(terminated, 'message') } : running ? { running } : {}
}

function without<T extends object, K extends keyof T>(object: T, key: K): Omit<T, K> {
  const { [key]: _, ...rest } = object
  return rest
}

function withoutDetails(status: Frozen<ContainerStatus>): Frozen<ContainerStatus> {
  const { name, ready, restartCount, started, image, imageID, containerID, state } = withoutMessages(status)
  return { name, ready, restartCount, started, image, imageID, containerID, state }
}

/** The image's names are required, and may be empty. */
function onlyState({ name, ready, restartCount, started, state = {} }: Frozen<ContainerStatus>): Frozen<ContainerStatus> {
  const { waiting, running, terminated } = state
  const shortState = terminated
    ? { terminated: { exitCode: terminated.exitCode, reason: terminated.reason } }
    : waiting
      ? { waiting: { reason: waiting.reason } }
      : running
        ? { running }
        : {}
  return { name, ready, restartCount, started, image: '', imageID: '', state: shortState }
}
