/**
 * The whole PodStatus that the kubelet reports (L3, pure), and how it is merged with what others wrote into the status.
 * Upstream: kubelet_pods.go generateAPIPodStatus, convertStatusToAPIStatus; status_manager.go mergePodStatus, updateLastTransitionTime (v1.36).
 */
import type { ContainerStatus, PodCondition, PodStatus, ResourceRequirements } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import { formatTime } from '#base/time'
import { isRestartableInitContainer, isStaticPod, isTerminalPhase, statusOf } from '../core/containers.ts'
import { type ConditionDraft, containersReadyCondition, initializedCondition, readyCondition, readyToStartContainersCondition } from '../core/podConditions.ts'
import { sandboxIPs } from '../core/podRuntimeStatus.ts'
import { type ContainerStatusInput, containerStatuses, unknownEnd } from './containerStatuses.ts'
import { podSandboxChanged } from './podActions.ts'
import { podLevelStatus } from './podLevelStatus.ts'
import { podPhase } from './podPhase.ts'
import { allContainersRestartingCondition, containersToReset, mayRestartAll, shouldAllContainersRestart } from './restartAll.ts'

export interface PodStatusInput extends Omit<ContainerStatusInput, 'previous' | 'isRestartingAll'> {
  /** The last status that was sent, or the API's. */
  readonly previousStatus: Frozen<PodStatus>
  /** Nothing of the pod will be started again. */
  readonly podIsTerminal: boolean
  readonly nowMs: number
  readonly hostIPs: readonly string[]
  /** PodResizePending, PodResizeInProgress. */
  readonly resizeConditions?: readonly ConditionDraft[] | undefined
  /** The feature gate InPlacePodLevelResourcesVerticalScaling: the status has the resources of the pod as a whole. */
  readonly reportsPodResources?: boolean | undefined
  /** What a resize has written for the pod as a whole. */
  readonly podResources?: Frozen<ResourceRequirements> | undefined
  /** Set when the kubelet itself ended the pod: DeadlineExceeded, Evicted, a refused admission. */
  readonly ending?:
    | {
        readonly phase: 'Failed' | 'Succeeded'
        readonly reason: string
        readonly message: string
        /** The node ends the pod, which did nothing wrong: sets the condition DisruptionTarget. */
        readonly disrupted?: boolean | undefined
        /** The node never admitted the pod: there is nothing else to report. */
        readonly refused?: boolean | undefined
      }
    | undefined
}

/** The conditions that only the kubelet sets, in the order in which it reports them. */
const kubeletConditions = [
  'PodResizePending',
  'PodResizeInProgress',
  'PodReadyToStartContainers',
  'Initialized',
  'Ready',
  'ContainersReady',
  'PodScheduled',
  'AllContainersRestarting',
]

export function isKubeletCondition(type: string): boolean {
  return kubeletConditions.includes(type)
}

export function generatePodStatus(input: PodStatusInput): PodStatus {
  const { pod, previousStatus, runtimeStatus } = input
  if (input.ending?.refused) return refusedStatus(input, input.ending)
  const isRestartingAll = shouldAllContainersRestart(pod, runtimeStatus, previousStatus)
  const of = (previous: Frozen<PodStatus>['containerStatuses']) => ({ ...input, isRestartingAll, previous })
  const room = messageRoom(pod)
  const statuses: typeof containerStatuses = (...of) => containerStatuses(...of).map((status) => withShortMessages(status, room))
  const init = statuses(of(previousStatus.initContainerStatuses), pod.spec.initContainers ?? [], 'init')
  const regular = statuses(of(previousStatus.containerStatuses), pod.spec.containers, 'regular')
  const ephemeral = statuses(of(previousStatus.ephemeralContainerStatuses), pod.spec.ephemeralContainers ?? [], 'ephemeral')
  const sandboxId = runtimeStatus.sandboxes[0]?.id
  const regularNames = new Set(pod.spec.containers.map((container) => container.name))
  const initialized = runtimeStatus.containers.some((record) => record.sandboxId === sandboxId && regularNames.has(record.name))
  const all = [...init, ...regular]
  const phase = settledPhase(input, podPhase(pod, all, input.podIsTerminal, initialized))
  const ended = input.podIsTerminal ? terminatedStatuses(pod, init, regular) : { init, regular }
  const ips = pod.spec.hostNetwork ? input.hostIPs : sandboxIPs(runtimeStatus)
  const podIPs = ips.length > 0 ? ips : (previousStatus.podIPs ?? []).map((entry) => entry.ip)
  const ending = isTerminalPhase(previousStatus.phase) ? undefined : input.ending
  return {
    ...(pod.metadata.generation === undefined ? {} : { observedGeneration: pod.metadata.generation }),
    phase,
    conditions: conditionsOf(input, all, phase),
    ...reasonOf(ending ?? (phase === previousStatus.phase ? previousStatus : {})),
    ...(input.hostIPs[0] ? { hostIP: input.hostIPs[0], hostIPs: input.hostIPs.map((ip) => ({ ip })) } : {}),
    ...(podIPs[0] ? { podIP: podIPs[0], podIPs: podIPs.map((ip) => ({ ip })) } : {}),
    startTime: previousStatus.startTime ?? formatTime(input.nowMs),
    ...(init.length > 0 ? { initContainerStatuses: ended.init } : {}),
    containerStatuses: ended.regular,
    ...(ephemeral.length > 0 ? { ephemeralContainerStatuses: ephemeral } : {}),
    ...(input.reportsPodResources ? podLevelStatus(pod, input.podResources) : {}),
    ...(previousStatus.qosClass ? { qosClass: previousStatus.qosClass } : {}),
  }
}

/** The same status of a pod that has got its sandbox since. */
export function withReadySandbox(status: Frozen<PodStatus>, nowMs: number): PodStatus {
  const copy = deepCopy<PodStatus>(status)
  const condition = copy.conditions?.find(({ type }) => type === 'PodReadyToStartContainers')
  if (condition && condition.status !== 'True') Object.assign(condition, { status: 'True', lastTransitionTime: formatTime(nowMs) })
  return copy
}

function conditionsOf(input: PodStatusInput, all: readonly ContainerStatus[], phase: string): PodCondition[] {
  const { pod, previousStatus, runtimeStatus } = input
  const before = previousStatus.conditions ?? []
  const containersReady = containersReadyCondition(pod, all, phase)
  const drafts = [
    ...(input.resizeConditions ?? []),
    readyToStartContainersCondition(!podSandboxChanged(pod, runtimeStatus).changed),
    initializedCondition(pod, all, phase, before),
    readyCondition(pod, containersReady, before),
    containersReady,
    ...(mayRestartAll(pod) ? [allContainersRestartingCondition(phase, containersToReset(pod, runtimeStatus, previousStatus).length > 0)] : []),
    ...(input.ending?.disrupted ? [disruption(input.ending.message)] : []),
  ]
  return mergeConditions(before, drafts, input.nowMs, pod.metadata.generation)
}

/**
 * The final statuses of the containers of a finished pod: containers without a known exit have failed. If the pod was never initialized, the
 * statuses of its init containers are enough. Upstream: status_manager.go TerminatePod.
 */
function terminatedStatuses(pod: PodStatusInput['pod'], init: readonly ContainerStatus[], regular: readonly ContainerStatus[]) {
  const ended = (status: ContainerStatus): ContainerStatus => (status.state?.terminated ? status : { ...status, state: { terminated: { ...unknownEnd } } })
  const wasStarted = ({ state, lastState }: ContainerStatus) => state?.waiting === undefined || lastState?.terminated !== undefined
  const begun = Math.max(1, init.findLastIndex(wasStarted) + 1)
  return {
    init: init.map((status, index) => (index < begun ? ended(status) : status)),
    regular: hasPodInitialized(pod) ? regular.map(ended) : [...regular],
  }
}

/** As far as the API knows: a regular container has started, or the last init container has done its work. */
function hasPodInitialized({ spec, status }: PodStatusInput['pod']): boolean {
  const last = spec.initContainers?.at(-1)
  if (!last) return true
  if (status?.containerStatuses?.some(({ state, lastState }) => lastState?.terminated !== undefined || state?.waiting === undefined)) return true
  const reported = statusOf(status?.initContainerStatuses, last.name)
  if (isRestartableInitContainer(last)) return reported?.state?.running !== undefined && reported.started === true
  return reported?.state?.terminated?.exitCode === 0 || reported?.lastState?.terminated?.exitCode === 0
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
  const conditions = (previousStatus.conditions ?? []).filter(({ type }) => !isKubeletCondition(type)).map((condition) => deepCopy(condition))
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

function disruption(message: string): ConditionDraft {
  return { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message }
}

function reasonOf(source: { readonly reason?: string | undefined; readonly message?: string | undefined }) {
  return { ...(source.reason ? { reason: source.reason } : {}), ...(source.message ? { message: source.message } : {}) }
}

/** A terminal phase is final; an ending decided by the kubelet overrides the containers' result; a finished pod without success has failed. */
function settledPhase({ pod, previousStatus, ending, podIsTerminal }: PodStatusInput, computed: string): string {
  const before = previousStatus.phase
  if (isTerminalPhase(before)) return before as string
  if (ending) return ending.phase
  return podIsTerminal && !isStaticPod(pod) && !isTerminalPhase(computed) ? 'Failed' : computed
}

/**
 * Conditions of other components first, unchanged, then the kubelet's own in order. A transition time changes only with the status, or a resize's reason.
 * The observed generation is the pod's unless the draft sets it; the condition of a restart of all containers has none, as upstream.
 */
export function mergeConditions(
  previous: readonly Frozen<PodCondition>[],
  drafts: readonly ConditionDraft[],
  nowMs: number,
  generation: number | undefined,
): PodCondition[] {
  const all: ConditionDraft[] = [...drafts, { type: 'PodScheduled', status: 'True' }]
  const own = all.map((draft): PodCondition => {
    const old = previous.find((condition) => condition.type === draft.type)
    const isSame = old?.status === draft.status && (!draft.type.startsWith('PodResize') || old.reason === draft.reason)
    return {
      ...(generation === undefined || draft.type === 'AllContainersRestarting' ? {} : { observedGeneration: generation }),
      ...draft,
      lastProbeTime: old?.lastProbeTime,
      lastTransitionTime: isSame && old.lastTransitionTime ? old.lastTransitionTime : formatTime(nowMs),
    }
  })
  const rank = ({ type }: PodCondition) => kubeletConditions.indexOf(type)
  const shared = own.filter((condition) => rank(condition) < 0)
  const others = previous.filter(({ type }) => !isKubeletCondition(type) && !shared.some((condition) => condition.type === type))
  return [
    ...others.map((condition) => deepCopy<PodCondition>(condition)),
    ...shared,
    ...own.filter((condition) => rank(condition) >= 0).sort((a, b) => rank(a) - rank(b)),
  ]
}
