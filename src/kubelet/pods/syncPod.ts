/**
 * One step of one pod (L3): reads the runtime, reports the status, plans and carries out the plan. podActions.ts makes the plan.
 * Upstream: kubelet.go SyncPod, kuberuntime_manager.go SyncPod (v1.36).
 */
import type { PodStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Timer } from '#base/clock'
import { least } from '#base/extremes'
import { messageOf } from '#base/messageOf'
import { parseTime } from '#base/time'
import type { PodSandboxConfig } from '#grpc/criTypes'
import { rpcErrorText } from '#grpc/grpcError'
import type { Allocations } from '../allocation/allocations.ts'
import type { BackOff } from '../core/backOff.ts'
import { effectiveResources } from '../core/cgroupResources.ts'
import { type ContainerKind, type FrozenContainer, type FrozenPod, formatPod, isTerminalPhase, turnIfLarge } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { formatElapsed } from '../core/formatElapsed.ts'
import { podReference } from '../core/podReference.ts'
import { type PodRuntimeStatus, readPodRuntimeStatus, sandboxIPs } from '../core/podRuntimeStatus.ts'
import type { Refusal } from '../core/refusal.ts'
import { gateEnabled } from '../core/resourceConfig.ts'
import { StartError } from '../core/startError.ts'
import type { ImageManager } from '../images/imageManager.ts'
import type { ProbeManager } from '../probes/probeManager.ts'
import type { CgroupTree } from '../resources/cgroupTree.ts'
import type { VolumeManager } from '../volumes/volumeManager.ts'
import type { MountedVolumes } from '../volumes/volumePlugin.ts'
import { VolumesNotReady } from '../volumes/waits.ts'
import type { StartFailure } from './containerStatuses.ts'
import { killContainer, killPod } from './killing.ts'
import { computePodActions, isNothing, type PodActions, podSandboxChanged } from './podActions.ts'
import { containerTypes, type PodMetrics } from './podMetrics.ts'
import type { PodResizer } from './podResizer.ts'
import { type StartRequest, startContainer, startSandbox } from './podStarter.ts'
import { generatePodStatus, isKubeletCondition, type PodStatusInput, withReadySandbox } from './podStatus.ts'
import { containersToReset, msUntilReset, resetContainers } from './restartAll.ts'
import { errorBackOffMs, jittered, networkBackOffMs, resyncInMs } from './retryDelay.ts'
import { podSandboxConfig } from './runtimeConfig.ts'
import type { StatusManager } from './statusManager.ts'
import { withTerminationMessages } from './terminationMessage.ts'

export interface PodMachinery {
  readonly context: KubeletContext
  readonly images: ImageManager
  readonly volumes: VolumeManager
  readonly probes: ProbeManager
  readonly statuses: StatusManager
  readonly crashLoop: BackOff
  readonly metrics: PodMetrics
  readonly allocations: Allocations
  readonly cgroups: CgroupTree
  readonly resizer: PodResizer
  /** Why pods cannot have a network of their own now. */
  networkProblem(): Promise<string | undefined>
  /** Why the node does not take the pod; undefined: it does. */
  admit(pod: FrozenPod): Promise<Refusal | undefined>
  /** Records the runtime status that a step read, and knows whether the runtime may have containers of a pod. */
  readonly events: { note(status: PodRuntimeStatus): void; mayHold(uid: string): boolean }
}

/** State of a pod between two steps. */
export interface PodMemory {
  readonly startFailures: Map<string, StartFailure>
  readonly terminationMessages: Map<string, string>
  ending?: NonNullable<PodStatusInput['ending']> | undefined
  /** Container → its restart count, for containers that were removed from the runtime because all restart. */
  readonly resetCounts: Map<string, number>
  /** Container → time of the last event about its back-off. */
  readonly backOffReportedMs: Map<string, number>
  /** When this kubelet first saw the pod, in monotonic time; undefined once it has run, or had before. */
  firstSeenMs?: number | undefined
  /** Asked once, when the pod is new to the node. */
  admitted?: boolean
  /** The runtime reported a change since the step last read the pod. */
  isOutdated?: boolean
  /** A step has looked at the pod. */
  isKnown?: boolean
}

export interface SyncOutcome {
  /** No container of the pod runs or will run again: the worker then terminates the pod. */
  readonly terminal: boolean
  /** When to look again even if nothing happens. */
  readonly againInMs: number | undefined
}

const backOffEventPeriodMs = 10_000
/** If a start takes longer, for example to pull images, the status is reported before its end. */
const slowStartMs = 2_000

/** The runtime's status of a pod cannot be read. */
export class RuntimeStatusError extends Error {
  constructor(cause: unknown) {
    super(rpcErrorText(cause), { cause })
    this.name = 'RuntimeStatusError'
  }
}

/** What runs of the pod, with the last words of what has ended. @throws RuntimeStatusError */
export async function readPod({ context, events }: PodMachinery, pod: FrozenPod, memory: PodMemory): Promise<PodRuntimeStatus> {
  const uid = pod.metadata.uid ?? ''
  await turnIfLarge(pod)
  memory.isOutdated = false
  const isNew = !memory.isKnown && !events.mayHold(uid)
  memory.isKnown = true
  if (isNew) return { uid, sandboxes: [], containers: [] }
  const status = await readPodRuntimeStatus(context.runtime, uid).catch((error: unknown) => Promise.reject(new RuntimeStatusError(error)))
  events.note(status)
  return withTerminationMessages(context, status, memory.terminationMessages)
}

/** The status to report, from what runs and what was reported before. */
export function currentStatus(machinery: PodMachinery, pod: FrozenPod, runtimeStatus: PodRuntimeStatus, memory: PodMemory, podIsTerminal: boolean): PodStatus {
  const { context, statuses, probes } = machinery
  return generatePodStatus({
    pod,
    runtimeStatus,
    runtimeName: context.runtime.name,
    previousStatus: previousStatus(pod, statuses.get(pod.metadata.uid ?? '')),
    startFailure: (name) => memory.startFailures.get(name),
    probes,
    podIsTerminal,
    nowMs: context.clock.now(),
    hostIPs: context.config.nodeIPs,
    ending: memory.ending,
    appliedResources: (record) => machinery.resizer.actuated(pod.metadata.uid ?? '', record),
    reportsPodResources: gateEnabled(context.config, 'InPlacePodLevelResourcesVerticalScaling'),
    podResources: machinery.allocations.actuated(pod.metadata.uid ?? ''),
    resizeConditions: machinery.allocations.conditions(pod.metadata.uid ?? ''),
    resourceStatus: (container) => context.resources.status(pod, container),
  })
}

/** Our last word, with the conditions that others have set since. */
function previousStatus(pod: FrozenPod, reported: Frozen<PodStatus> | undefined): Frozen<PodStatus> {
  if (!reported) return pod.status ?? {}
  const own = (reported.conditions ?? []).filter(({ type }) => isKubeletCondition(type))
  const others = (pod.status?.conditions ?? []).filter(({ type }) => !isKubeletCondition(type))
  // An end that others have decided is one.
  const { phase, reason, message } = isTerminalPhase(pod.status?.phase) ? (pod.status ?? {}) : reported
  return { ...reported, phase, reason, message, conditions: [...own, ...others] }
}

/** Milliseconds until activeDeadlineSeconds is over; undefined without one. */
function deadlineInMs(pod: FrozenPod, startTime: string | undefined, nowMs: number): number | undefined {
  const seconds = pod.spec.activeDeadlineSeconds
  const startMs = parseTime(startTime ?? '')
  return seconds === undefined || startMs === undefined ? undefined : startMs + seconds * 1000 - nowMs
}

/** One step towards what the pod's spec asks for, as far as the node has given it. */
export async function syncPod(machinery: PodMachinery, asked: FrozenPod, memory: PodMemory, signal: AbortSignal): Promise<SyncOutcome> {
  const { context, statuses, probes } = machinery
  if (!(await isAdmitted(machinery, asked, memory))) return { terminal: true, againInMs: undefined }
  await machinery.allocations.resize(asked)
  const pod = machinery.allocations.allocatedPod(asked)
  const before = await readPod(machinery, pod, memory)
  probes.update(pod, before)
  const status = currentStatus(machinery, pod, before, memory, false)
  const deadlineMs = deadlineInMs(pod, status.startTime, context.clock.now())
  if (deadlineMs !== undefined && deadlineMs <= 0 && !memory.ending) {
    memory.ending = { phase: 'Failed', reason: 'DeadlineExceeded', message: 'Pod was active on the node longer than the specified deadline' }
    context.recorder.event(podReference(pod), 'Normal', 'DeadlineExceeded', memory.ending.message)
    return { terminal: true, againInMs: undefined }
  }
  statuses.set(pod, status)
  if (isTerminalPhase(status.phase)) return { terminal: true, againInMs: undefined }
  const reset = await restartAll(machinery, pod, before, status, memory)
  if (reset) return reset
  const resized = await machinery.resizer.carryOut(pod, before)
  await context.resources.reconcile(pod, before)
  if (!pod.spec.hostNetwork && podSandboxChanged(pod, before).changed) {
    const problem = await machinery.networkProblem()
    if (problem) {
      context.recorder.event(podReference(pod), 'Warning', 'NetworkNotReady', `network is not ready: ${problem}`)
      return { terminal: false, againInMs: Math.min(jittered(networkBackOffMs, context.random), deadlineMs ?? Number.POSITIVE_INFINITY) }
    }
  }
  const volumes = await volumesOf(machinery, pod)
  if (volumes instanceof VolumesNotReady) return { terminal: false, againInMs: Math.min(volumes.retryAfterMs, deadlineMs ?? Number.POSITIVE_INFINITY) }
  const actions = computePodActions(pod, before, probes)
  // A step without actions need not read the runtime again: its events report other changes.
  const isQuiet = !resized && isNothing(actions)
  const retryInMs = isQuiet ? undefined : await carryOut(machinery, { pod, status: before, actions, volumes, memory }, signal)
  const after = isQuiet ? before : await readPod(machinery, pod, memory)
  if (!isQuiet) probes.update(pod, after)
  const reached = currentStatus(machinery, pod, after, memory, false)
  statuses.set(pod, reached)
  if (memory.firstSeenMs !== undefined && reached.phase === 'Running') {
    machinery.metrics.podStartDuration.observe((context.clock.monotonicMs() - memory.firstSeenMs) / 1000)
    memory.firstSeenMs = undefined
  }
  // What happened during the step is in `after`: a sidecar that runs lets the next container start at once.
  if (isTerminalPhase(reached.phase) || hasWork(computePodActions(pod, after, probes), memory)) return { terminal: false, againInMs: 0 }
  const waits = [resyncInMs(retryInMs, context.config.syncFrequencyMs, context.random), deadlineMs].filter((ms) => ms !== undefined)
  return { terminal: false, againInMs: waits.length > 0 ? least(waits) : undefined }
}

/** A missing volume is no failure of the step: it is already reported, and the pod is synced again when the volume may be retried. */
async function volumesOf({ context, volumes }: PodMachinery, pod: FrozenPod): Promise<MountedVolumes | VolumesNotReady> {
  try {
    return await volumes.setUpPod(pod)
  } catch (error) {
    if (!(error instanceof VolumesNotReady)) throw error
    context.log.v(2).info('Unable to attach or mount volumes for pod; skipping pod', { pod: formatPod(pod), error: error.message })
    return error
  }
}

/** If an exit requires it, removes all containers from the runtime, and the next step restarts them. Returns its time; undefined: no restart. */
async function restartAll(
  machinery: PodMachinery,
  pod: FrozenPod,
  before: PodRuntimeStatus,
  status: Frozen<PodStatus>,
  memory: PodMemory,
): Promise<SyncOutcome | undefined> {
  const { context, statuses } = machinery
  const records = containersToReset(pod, before, status)
  if (records.length === 0) return undefined
  const waitMs = msUntilReset(records, context.clock.now())
  if (waitMs > 0) return { terminal: false, againInMs: waitMs }
  for (const { name, restartCount } of records) {
    memory.resetCounts.set(name, Math.max(restartCount + 1, memory.resetCounts.get(name) ?? 0))
    memory.startFailures.delete(name)
  }
  await resetContainers(context, pod, before, records)
  statuses.set(pod, currentStatus(machinery, pod, await readPod(machinery, pod, memory), memory, false))
  return { terminal: false, againInMs: 0 }
}

/** A pod that has started before, perhaps under an earlier kubelet, is admitted without a check. */
async function isAdmitted(machinery: PodMachinery, pod: FrozenPod, memory: PodMemory): Promise<boolean> {
  if (memory.admitted || pod.status?.startTime || memory.ending) return true
  const refusal = await machinery.admit(pod)
  memory.admitted = refusal === undefined
  if (!refusal) return true
  memory.ending = { phase: 'Failed', reason: refusal.reason, message: `Pod was rejected: ${refusal.message}`, refused: true }
  machinery.context.recorder.event(podReference(pod), 'Warning', refusal.reason, refusal.message)
  machinery.metrics.rejected(refusal.reason)
  return false
}

/** Whether the plan has an action that did not just fail. */
function hasWork(actions: PodActions, memory: PodMemory): boolean {
  const fresh = [...actions.initContainersToStart, ...actions.containersToStart, ...actions.ephemeralContainersToStart]
  return actions.killPod || actions.containersToKill.length > 0 || fresh.some((container) => !memory.startFailures.has(container.name))
}

async function prepareDynamicResources(context: KubeletContext, pod: FrozenPod): Promise<void> {
  try {
    await context.resources.preparePod(pod)
  } catch (error) {
    const message = `Failed to prepare dynamic resources: ${messageOf(error)}`
    context.recorder.event(podReference(pod), 'Warning', 'FailedPrepareDynamicResources', message)
    throw error
  }
}

interface PodStep {
  readonly pod: FrozenPod
  readonly status: PodRuntimeStatus
  readonly actions: PodActions
  readonly volumes: MountedVolumes
  readonly memory: PodMemory
}

/** Carries out the planned actions. Returns after how many milliseconds to repeat the failed ones. */
async function carryOut(machinery: PodMachinery, step: PodStep, signal: AbortSignal): Promise<number | undefined> {
  const { pod, status, actions, volumes, memory } = step
  const { context } = machinery
  if (actions.killPod) {
    if (actions.createSandbox && actions.sandboxId) {
      context.recorder.event(podReference(pod), 'Normal', 'SandboxChanged', 'Pod sandbox changed, it will be killed and re-created.')
    }
    await killPod(context, pod, status, { signal })
    if (!actions.createSandbox) return undefined
  } else {
    const podIP = sandboxIPs(status)[0] ?? ''
    await Promise.all(actions.containersToKill.map(({ record, message, reason }) => killContainer(context, pod, record, podIP, { message, reason, signal })))
  }
  let sandboxId = actions.sandboxId
  let sandbox: PodSandboxConfig
  let podIPs: readonly string[] = sandboxIPs(status)
  let slow: Timer | undefined
  if (actions.createSandbox) {
    await prepareDynamicResources(context, pod)
    const { startedPods, startedPodsErrors, startedUserNamespacedPods, startedUserNamespacedPodsErrors } = machinery.metrics
    startedPods.inc()
    if (pod.spec.hostUsers === false) startedUserNamespacedPods.inc()
    try {
      ;({ id: sandboxId, config: sandbox } = await startSandbox(context, pod, actions.attempt, signal))
    } catch (error) {
      startedPodsErrors.inc()
      if (pod.spec.hostUsers === false) startedUserNamespacedPodsErrors.inc()
      throw error
    }
    const created = await context.runtime.podSandboxStatus(sandboxId).catch((error: unknown) => {
      context.recorder.event(podReference(pod), 'Warning', 'FailedPodSandBoxStatus', `Unable to get pod sandbox status: ${rpcErrorText(error)}`)
      throw error
    })
    podIPs = created ? sandboxIPs({ uid: status.uid, sandboxes: [created], containers: [] }) : []
    slow = context.clock.timer(slowStartMs, () => reportSandbox(machinery, pod))
  } else {
    sandbox = podSandboxConfig(pod, actions.attempt, context.userNamespaces.of(pod), context.config)
  }
  const addresses = podIPs
  if (pod.spec.hostNetwork) podIPs = context.config.nodeIPs
  const start: Start = (kind, container, targetContainerName) =>
    tryStart(machinery, memory, kind, { pod, container, sandboxId, sandbox, podIPs, status, volumes, targetContainerName, signal })
  const startWhenReady = async () => {
    if (!(await isNetworkReady(context, pod, addresses, signal))) return jittered(networkBackOffMs, context.random)
    return startContainers(pod, actions, start)
  }
  return startWhenReady().finally(() => slow?.cancel())
}

/** Upstream has no such step: network plugins that enforce policies wait while the runtime creates the sandbox. */
async function isNetworkReady({ podNetwork, recorder }: KubeletContext, pod: FrozenPod, podIPs: readonly string[], signal: AbortSignal): Promise<boolean> {
  if (!podNetwork || pod.spec.hostNetwork) return true
  try {
    if (podIPs.length === 0) throw new Error('the sandbox has no address')
    await podNetwork.podNetworkReady(pod, podIPs, signal)
    return true
  } catch (error) {
    if (signal.aborted) throw error
    recorder.event(podReference(pod), 'Warning', 'NetworkNotReady', `network is not ready: ${messageOf(error)}`)
    return false
  }
}

/** From now on the pod has a sandbox, which others may wait for. */
function reportSandbox({ context, statuses }: PodMachinery, pod: FrozenPod): void {
  const status = statuses.get(pod.metadata.uid ?? '')
  if (status) statuses.set(pod, withReadySandbox(status, context.clock.now()))
}

type Start = (kind: ContainerKind, container: FrozenContainer, targetContainerName?: string) => Promise<number | undefined>

/** One after another, in upstream's order. Returns when to try again those that could not be started. */
async function startContainers(pod: FrozenPod, actions: PodActions, start: Start): Promise<number | undefined> {
  const retries: (number | undefined)[] = []
  for (const container of actions.ephemeralContainersToStart) {
    const target = pod.spec.ephemeralContainers?.find((candidate) => candidate.name === container.name)?.targetContainerName
    retries.push(await start('ephemeral', container, target))
  }
  for (const container of actions.initContainersToStart) retries.push(await start('init', container))
  for (const container of actions.containersToStart) retries.push(await start('regular', container))
  const wanted = retries.filter((ms) => ms !== undefined)
  return wanted.length > 0 ? least(wanted) : undefined
}

/** A container that is changed has a fresh start: what it waits for is tied to its image and its resources. */
function backOffKey(pod: FrozenPod, { name, image = '', resources = {} }: FrozenContainer): string {
  return `${pod.metadata.uid}/${name}/${image}/${JSON.stringify(resources)}`
}

/** The remaining back-off since the container's last exit, which is recorded as an event; 0 when it may start. */
function backOffMs({ context, crashLoop }: PodMachinery, memory: PodMemory, pod: FrozenPod, container: FrozenContainer, finishedAtMs: number): number {
  const { name } = container
  const key = backOffKey(pod, container)
  const waitMs = crashLoop.remainingMs(key, finishedAtMs)
  if (waitMs <= 0) return 0
  const message = `back-off ${formatElapsed(crashLoop.get(key))} restarting failed container=${name} pod=${formatPod(pod)}`
  memory.startFailures.set(name, { reason: 'CrashLoopBackOff', message })
  // Every step would otherwise repeat the event.
  const reportedMs = memory.backOffReportedMs.get(name) ?? Number.NEGATIVE_INFINITY
  if (context.clock.now() - reportedMs >= backOffEventPeriodMs) {
    memory.backOffReportedMs.set(name, context.clock.now())
    context.recorder.event(podReference(pod, name), 'Warning', 'BackOff', `Back-off restarting failed container ${name} in pod ${formatPod(pod)}`)
  }
  return waitMs
}

/** How long images take does not count as the start of a pod. */
function timedPulls({ context, images, metrics }: PodMachinery): ImageManager {
  return {
    ...images,
    ensureImage: async (pod, ...rest) => {
      const fromMs = context.clock.monotonicMs()
      const image = await images.ensureImage(pod, ...rest)
      metrics.starts.pulled(pod.metadata.uid ?? '', fromMs, context.clock.monotonicMs())
      return image
    },
  }
}

/** Starts the container unless it must back off; a failure is remembered for the status. Returns when to try again. */
async function tryStart(machinery: PodMachinery, memory: PodMemory, kind: ContainerKind, request: Omit<StartRequest, 'actuate'>): Promise<number | undefined> {
  const { context, crashLoop } = machinery
  const { pod, container, status } = request
  // Not the newest, which may just have been killed by us: the end before it is what the wait counts from.
  const last = status.containers.find(({ name, state }) => name === container.name && state === 'exited')
  if (last) {
    const waitMs = backOffMs(machinery, memory, pod, container, last.finishedAtMs)
    if (waitMs > 0) return waitMs
    crashLoop.next(backOffKey(pod, container), last.finishedAtMs)
  }
  const container_type = containerTypes[kind]
  machinery.metrics.startedContainers.inc({ container_type })
  try {
    const actuate = () => machinery.allocations.setActuated(pod.metadata.uid ?? '', container.name, effectiveResources(pod, container))
    await startContainer(context, timedPulls(machinery), { ...request, resetCount: memory.resetCounts.get(container.name), actuate })
    memory.resetCounts.delete(container.name)
    memory.startFailures.delete(container.name)
    return undefined
  } catch (error) {
    if (request.signal.aborted || !(error instanceof StartError)) throw error
    machinery.metrics.startedContainersErrors.inc({ container_type, code: error.reason })
    memory.startFailures.set(container.name, { reason: error.reason, message: error.message })
    return Math.min(error.retryAfterMs ?? errorBackOffMs, errorBackOffMs)
  }
}
