/**
 * The whole PodStatus that the kubelet reports (L3, pure), and how it is merged with what others wrote into the status.
 * Upstream: kubelet_pods.go generateAPIPodStatus, convertStatusToAPIStatus; status_manager.go mergePodStatus, updateLastTransitionTime (v1.36).
 */
import type { ContainerStatus, PodCondition, PodStatus, ResourceRequirements } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import { formatTime } from '#base/time'
import { sandboxIPs } from '../runtime/podRuntimeStatus.ts'
import { type ContainerStatusInput, containerStatuses } from './containerStatuses.ts'
import { isTerminalPhase } from './containers.ts'
import { podSandboxChanged } from './podActions.ts'
import { type ConditionDraft, containersReadyCondition, initializedCondition, readyCondition, readyToStartContainersCondition } from './podConditions.ts'
import { podPhase } from './podPhase.ts'
import { allContainersRestartingCondition, containersToReset, mayRestartAll } from './restartAll.ts'

export interface PodStatusInput extends Omit<ContainerStatusInput, 'previous'> {
  /** The last status that was sent, or the API's. */
  readonly previousStatus: Frozen<PodStatus>
  readonly nowMs: number
  readonly hostIPs: readonly string[]
  /** PodResizePending, PodResizeInProgress. */
  readonly resizeConditions?: readonly ConditionDraft[] | undefined
  /** What the pod has as a whole. */
  readonly podResources?: Frozen<ResourceRequirements> | undefined
  /** Set when the kubelet itself ended the pod: DeadlineExceeded, Evicted, a refused admission. */
  readonly ending?:
    | {
        readonly phase: 'Failed' | 'Succeeded'
        readonly reason: string
        readonly message: string
        /** The node ends it for its own sake: told as DisruptionTarget. */
        readonly disrupted?: boolean | undefined
        /** The node never took it: there is nothing else to tell. */
        readonly refused?: boolean | undefined
      }
    | undefined
}

const kubeletConditions = new Set([
  'PodResizePending',
  'PodResizeInProgress',
  'PodReadyToStartContainers',
  'Initialized',
  'Ready',
  'ContainersReady',
  'PodScheduled',
  'AllContainersRestarting',
])

export function generatePodStatus(input: PodStatusInput): PodStatus {
  const { pod, previousStatus, runtimeStatus } = input
  if (input.ending?.refused) return refusedStatus(input, input.ending)
  const of = (previous: PodStatus['containerStatuses'] | Frozen<PodStatus>['containerStatuses']) => ({ ...input, previous })
  const room = messageRoom(pod)
  const statuses: typeof containerStatuses = (...of) => containerStatuses(...of).map((status) => withShortMessages(status, room))
  const init = statuses(of(previousStatus.initContainerStatuses), pod.spec.initContainers ?? [], 'init')
  const regular = statuses(of(previousStatus.containerStatuses), pod.spec.containers, 'regular')
  const ephemeral = statuses(of(previousStatus.ephemeralContainerStatuses), pod.spec.ephemeralContainers ?? [], 'ephemeral')
  const sandboxId = runtimeStatus.sandboxes[0]?.id
  const regularNames = new Set(pod.spec.containers.map((container) => container.name))
  const initialized = runtimeStatus.containers.some((record) => record.sandboxId === sandboxId && regularNames.has(record.name))
  const phase = settledPhase(input, podPhase(pod, [...init, ...regular], input.podIsTerminal, initialized))
  const all = [...init, ...regular]
  const containersReady = containersReadyCondition(pod, all, phase)
  const drafts = [
    readyToStartContainersCondition(!podSandboxChanged(pod, runtimeStatus).changed),
    initializedCondition(pod, all, phase, previousStatus.conditions ?? []),
    readyCondition(pod, containersReady, previousStatus.conditions ?? []),
    containersReady,
    ...(mayRestartAll(pod) ? [allContainersRestartingCondition(phase, containersToReset(pod, runtimeStatus, previousStatus).length > 0)] : []),
    ...(input.resizeConditions ?? []),
    ...(input.ending?.disrupted ? [disruption(input.ending.message)] : []),
  ]
  const ips = pod.spec.hostNetwork ? input.hostIPs : sandboxIPs(runtimeStatus)
  const podIPs = ips.length > 0 ? ips : (previousStatus.podIPs ?? []).map((entry) => entry.ip)
  const ending = isTerminalPhase(previousStatus.phase) ? undefined : input.ending
  return {
    ...(pod.metadata.generation === undefined ? {} : { observedGeneration: pod.metadata.generation }),
    phase,
    conditions: mergeConditions(previousStatus.conditions ?? [], drafts, input.nowMs, pod.metadata.generation),
    ...reasonOf(ending ?? (isTerminalPhase(previousStatus.phase) ? previousStatus : {})),
    ...(input.hostIPs[0] ? { hostIP: input.hostIPs[0], hostIPs: input.hostIPs.map((ip) => ({ ip })) } : {}),
    ...(podIPs[0] ? { podIP: podIPs[0], podIPs: podIPs.map((ip) => ({ ip })) } : {}),
    startTime: previousStatus.startTime ?? formatTime(input.nowMs),
    ...(init.length > 0 ? { initContainerStatuses: init } : {}),
    containerStatuses: regular,
    ...(ephemeral.length > 0 ? { ephemeralContainerStatuses: ephemeral } : {}),
    ...podLevelResources(input),
    ...(previousStatus.qosClass ? { qosClass: previousStatus.qosClass } : {}),
  }
}

const maxMessageBytesOfPod = 12 * 1024

/** The last words of all containers together have so much room; each has its share. */
function messageRoom({ spec }: PodStatusInput['pod']): number {
  const count = spec.containers.length + (spec.initContainers?.length ?? 0) + (spec.ephemeralContainers?.length ?? 0)
  return Math.floor(maxMessageBytesOfPod / Math.max(1, count))
}

function withShortMessages(status: ContainerStatus, maxBytes: number): ContainerStatus {
  const short = <State extends ContainerStatus['state']>(state: State): State => {
    const message = state?.terminated?.message
    if (!state?.terminated || !message || Buffer.byteLength(message) <= maxBytes) return state
    return { ...state, terminated: { ...state.terminated, message: Buffer.from(message).subarray(0, maxBytes).toString() } }
  }
  return { ...status, state: short(status.state), lastState: short(status.lastState) }
}

/** As upstream's kubelet reports what it rejects: no addresses, no containers, and only conditions of others. */
function refusedStatus({ pod, previousStatus, nowMs }: PodStatusInput, ending: NonNullable<PodStatusInput['ending']>): PodStatus {
  const conditions = (previousStatus.conditions ?? []).filter(({ type }) => !kubeletConditions.has(type)).map((condition) => deepCopy(condition))
  return {
    ...(pod.metadata.generation === undefined ? {} : { observedGeneration: pod.metadata.generation }),
    phase: ending.phase,
    ...(conditions.length > 0 ? { conditions } : {}),
    reason: ending.reason,
    message: ending.message,
    startTime: previousStatus.startTime ?? formatTime(nowMs),
    ...(previousStatus.qosClass ? { qosClass: previousStatus.qosClass } : {}),
  }
}

/** Only of pods that ask for something as a whole. */
function podLevelResources({ pod, podResources }: PodStatusInput): Pick<PodStatus, 'resources' | 'allocatedResources'> {
  const own = pod.spec.resources
  if (!own) return {}
  return { resources: deepCopy<ResourceRequirements>(podResources ?? own), ...(own.requests ? { allocatedResources: { ...own.requests } } : {}) }
}

function disruption(message: string): ConditionDraft {
  return { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message }
}

function reasonOf(source: { readonly reason?: string | undefined; readonly message?: string | undefined }) {
  return { ...(source.reason ? { reason: source.reason } : {}), ...(source.message ? { message: source.message } : {}) }
}

/** A terminal phase is final; an ending decided by the kubelet beats what the containers say. */
function settledPhase(input: PodStatusInput, computed: string): string {
  const before = input.previousStatus.phase
  if (isTerminalPhase(before)) return before as string
  return input.ending?.phase ?? computed
}

/** Conditions of others stay; ours get a new transition time only when their status changes. Order: the kubelet's, then the rest. */
export function mergeConditions(
  previous: readonly Frozen<PodCondition>[],
  drafts: readonly ConditionDraft[],
  nowMs: number,
  generation: number | undefined,
): PodCondition[] {
  const scheduled = previous.find((condition) => condition.type === 'PodScheduled')
  const withScheduled: ConditionDraft[] = scheduled?.status === 'True' ? [...drafts] : [...drafts, { type: 'PodScheduled', status: 'True' }]
  const observed = generation === undefined ? {} : { observedGeneration: generation }
  const own = withScheduled.map((draft): PodCondition => {
    const old = previous.find((condition) => condition.type === draft.type)
    return {
      ...draft,
      ...observed,
      lastProbeTime: old?.lastProbeTime,
      lastTransitionTime: old?.status === draft.status && old.lastTransitionTime ? old.lastTransitionTime : formatTime(nowMs),
    }
  })
  const kept = scheduled?.status === 'True' ? [deepCopy(scheduled)] : []
  const others = previous
    .filter(({ type }) => !kubeletConditions.has(type) && !drafts.some((draft) => draft.type === type))
    .map((condition) => deepCopy(condition))
  return [...own, ...kept, ...others]
}
