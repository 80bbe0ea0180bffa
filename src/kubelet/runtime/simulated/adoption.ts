/**
 * Continues the pods of an earlier process (L3). Real containers outlive the kubelet, which finds them in the runtime when it starts again; simulated ones live in
 * the memory of the process, and what is left of them is the pod's status in the API. Sandboxes and containers are built from it: ids, times, restart counts,
 * addresses, results. Not in the status: what was printed and is not part of the behaviour, and random numbers that were drawn. Upstream has no counterpart.
 */
import type { ContainerStatus, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Logger } from '#base/log'
import { parseTime } from '#base/time'
import { containerResources } from '../../core/cgroupResources.ts'
import { allContainers, type ContainerKind, type FrozenContainer, type FrozenPod, isTerminalPhase, statusFinder } from '../../core/containers.ts'
import { withDefaultTag } from '../../core/imageReference.ts'
import type { KubeletSources } from '../../core/kubeletSources.ts'
import { isolated } from '../../core/listWatch.ts'
import { podLogDirectory } from '../../core/podDirectory.ts'
import { annotationKeys, containerAnnotations, containerHash, containerLabels, podLabels } from '../../core/runtimeLabels.ts'
import type { SimulatedBehaviour } from './behaviour.ts'
import { addContainer, linesOf, planEnding, setRunning } from './containers.ts'
import { addImage, usualUser } from './images.ts'
import { pullBehaviourOf } from './profile.ts'
import { addSandbox, setNotReady } from './sandboxes.ts'
import { after, behaviour, type Container, nanoseconds, newId, log as print, type Sandbox, type State } from './state.ts'

/** One run of a container, as its pod's status reports it. */
interface Run {
  readonly container: FrozenContainer
  readonly status: Frozen<ContainerStatus>
  readonly id: string
  readonly restartCount: number
  readonly running?: Frozen<NonNullable<NonNullable<ContainerStatus['state']>['running']>> | undefined
  readonly terminated?: Frozen<NonNullable<NonNullable<ContainerStatus['state']>['terminated']>> | undefined
}

const idPrefix = 'simulated://'
/** Of no use to a simulated container, which nothing limits; the amounts that are needed do not depend on it. */
const noLimits = { cpuCFSQuota: false, cpuCFSQuotaPeriodMs: 100, memoryCapacityBytes: Number.MAX_SAFE_INTEGER }
const logs = { podLogsDirectory: '/var/log/pods' }

/** Continues the pod, unless the runtime has it already, it has ended, or no container of it was created. */
export function adoptPod(state: State, pod: FrozenPod): void {
  const { metadata, status = {} } = pod
  const uid = metadata.uid ?? ''
  if (state.byPod.has(uid) || isTerminalPhase(status.phase)) return
  const runs = runsOf(pod)
  const isReady =
    runs.some(({ running }) => running) || status.conditions?.some(({ type, status: is }) => type === 'PodReadyToStartContainers' && is === 'True')
  if (runs.length === 0 && !isReady) return
  const startedMs = timeOf(status.startTime) ?? state.clock.now()
  const sandbox = adoptSandbox(state, pod, startedMs)
  for (const run of runs) adoptContainer(state, { pod, sandbox, startedMs }, run)
  if (!isReady) setNotReady(state, sandbox)
}

const timeOf = (text: string | undefined) => parseTime(text ?? '')

function adoptSandbox(state: State, pod: FrozenPod, startedMs: number): Sandbox {
  const { name = '', namespace = '', uid = '', annotations = {} } = pod.metadata
  const config = { metadata: { name, namespace, uid, attempt: 0 }, labels: podLabels(pod), annotations, logDirectory: podLogDirectory(logs, pod) }
  const ips = pod.spec.hostNetwork ? [] : (pod.status?.podIPs ?? []).map(({ ip }) => ip)
  return addSandbox(state, config, { id: newId(state.random), runtimeHandler: '', createdAt: nanoseconds(startedMs), ips })
}

/** The newest run of each container, then the one before it. */
function runsOf(pod: FrozenPod): Run[] {
  const { initContainerStatuses, containerStatuses, ephemeralContainerStatuses } = pod.status ?? {}
  const find: Record<ContainerKind, ReturnType<typeof statusFinder>> = {
    init: statusFinder(initContainerStatuses),
    regular: statusFinder(containerStatuses),
    ephemeral: statusFinder(ephemeralContainerStatuses),
  }
  return allContainers(pod).flatMap(({ kind, container }) => {
    const status = find[kind](container.name)
    return status ? runsOfContainer(container, status) : []
  })
}

function runsOfContainer(container: FrozenContainer, status: Frozen<ContainerStatus>): Run[] {
  const { restartCount, state = {}, lastState = {} } = status
  const id = idOf(status.containerID)
  if (id === undefined) return []
  const last = lastState.terminated
  const lastId = idOf(last?.containerID)
  // A container that waits to be started again is shown as waiting, and its end as the last state.
  const terminated = state.terminated ?? (state.waiting && lastId === id ? last : undefined)
  const current = { container, status, id, restartCount, running: state.running, terminated }
  if (!last || lastId === undefined || lastId === id) return [current]
  return [current, { container, status, id: lastId, restartCount: Math.max(0, restartCount - 1), terminated: last }]
}

/** Undefined where no container is named, or one of another runtime. */
function idOf(containerID: string | undefined): string | undefined {
  return containerID?.startsWith(idPrefix) ? containerID.slice(idPrefix.length) : undefined
}

interface Adopted {
  readonly pod: FrozenPod
  readonly sandbox: Sandbox
  readonly startedMs: number
}

function adoptContainer(state: State, { pod, sandbox, startedMs }: Adopted, run: Run): void {
  const { id, status, running, terminated } = run
  const beganMs = timeOf(running?.startedAt ?? terminated?.startedAt)
  // Runs are ordered by their creation, and the status has it in whole seconds: later ones are a microsecond apart.
  const createdAt = nanoseconds((beganMs ?? startedMs) + run.restartCount / 1000)
  const container = addContainer(state, sandbox, factsOf(pod, run), { id, imageRef: status.imageID, createdAt })
  adoptImage(state, sandbox, status)
  if (terminated) setExited(container, terminated, beganMs ?? 0)
  if (!running || beganMs === undefined) return
  setRunning(container, beganMs)
  const does = readable(() => behaviour(state, container))
  if (does) goOn(state, container, does, beganMs)
}

/** An annotation that cannot be read keeps a container from starting; one that runs is left alone. */
function readable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

function setExited(container: Container, { exitCode, reason = '', message = '', finishedAt }: NonNullable<Run['terminated']>, startedMs: number): void {
  const finishedMs = timeOf(finishedAt) ?? startedMs
  const state = 'CONTAINER_EXITED'
  container.status = { ...container.status, state, exitCode, reason, message, startedAt: nanoseconds(startedMs), finishedAt: nanoseconds(finishedMs) }
  container.record = { ...container.record, state }
}

/** What it has printed by now, what it will print, and when it ends. */
function goOn(state: State, container: Container, does: SimulatedBehaviour, startedMs: number): void {
  const sinceStartMs = Math.max(0, state.clock.now() - startedMs)
  for (const line of linesOf(container, does)) {
    const { afterMs, text } = typeof line === 'string' ? { afterMs: 0, text: line } : line
    if (afterMs <= sinceStartMs) container.logs.push({ atMs: startedMs + afterMs, text })
    else after(state, container, afterMs - sinceStartMs, () => print(state, container, [text]))
  }
  planEnding(state, container, does, sinceStartMs)
}

function factsOf(pod: FrozenPod, { container, status, restartCount }: Run) {
  const { image, resources } = status
  // With what the container runs, and not what the pod asks for since.
  const had = resources ? ({ ...container, resources } as FrozenContainer) : container
  const isOther = !image.startsWith('sha256:') && image !== withDefaultTag(container.image ?? '')
  return {
    metadata: { name: container.name, attempt: restartCount },
    image: { image },
    labels: containerLabels(pod, container),
    annotations: {
      ...containerAnnotations(pod, had, restartCount),
      ...(isOther ? { [annotationKeys.hash]: containerHash({ name: container.name, image }) } : {}),
    },
    logPath: `${container.name}/${restartCount}.log`,
    linux: { resources: containerResources(pod, had, noLimits) },
  }
}

/** The image of a container that was started is on the node. */
function adoptImage(state: State, sandbox: Sandbox, { image, imageID }: Frozen<ContainerStatus>): void {
  if (image.startsWith('sha256:') || state.images.has(image)) return
  const user = readable(() => pullBehaviourOf(state.profile, image, sandbox.config, state.random).user)
  addImage(state, image, imageID.startsWith('sha256:') ? imageID : `sha256:${newId(state.random)}`, user ?? usualUser)
}

/** The kubelet's source of pods, whose first list the runtime adopts: these pods ran before the process. */
export function adoptingPods(follow: KubeletSources['pods'], runtime: { adopt(pod: Frozen<Pod>): void }, log: Logger): KubeletSources['pods'] {
  let isFirst = true
  return (nodeName, handler, signal) =>
    follow(
      nodeName,
      {
        ...handler,
        replace: (pods) => {
          if (isFirst) for (const pod of pods) isolated(log, pod, () => runtime.adopt(pod))
          isFirst = false
          handler.replace(pods)
        },
      },
      signal,
    )
}
