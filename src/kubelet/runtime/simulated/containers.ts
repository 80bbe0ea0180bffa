/** The containers of a simulated runtime (L3): made, started, ended and measured, without a process. */
import type { ContainerConfig } from '#grpc/criTypes'
import { GrpcError } from '#grpc/grpcError'
import type { CallContext, Containers } from '../../core/runtimeService.ts'
import { endingOf, type SimulatedBehaviour, usageOf } from './behaviour.ts'
import type { ContainerFacts } from './facts.ts'
import {
  after,
  behaviour,
  type Container,
  finish,
  forget,
  forgetTimers,
  idsOf,
  log,
  nanoseconds,
  newId,
  publish,
  remember,
  type Sandbox,
  type State,
} from './state.ts'

/** Takes it away with its timers, whether it runs or not. */
export function removeContainer(state: State, id: string): void {
  const container = state.containers.get(id)
  if (!container) return
  forgetTimers(container)
  state.containers.delete(id)
  forget(state, container.sandbox.config.metadata.uid, id)
  publish(state, id)
}

function createContainer(state: State, podSandboxId: string, { metadata, image, labels, annotations, logPath, linux }: ContainerConfig): string {
  const sandbox = state.sandboxes.get(podSandboxId)
  if (!sandbox) throw new GrpcError('NOT_FOUND', `sandbox "${podSandboxId}" not found`)
  const config = { metadata, image: nameOf(state, image.image), labels, annotations, logPath, linux: { resources: linux.resources } }
  const facts = { id: newId(state.random), imageRef: image.image, createdAt: nanoseconds(state.clock.now()) }
  return addContainer(state, sandbox, config, facts).status.id
}

/** The image as containers name it: a start by an id shows the name under which the image was pulled. */
function nameOf({ images }: State, image: string): { image: string } {
  if (!images.has(image)) for (const { id, repoTags } of images.values()) if (id === image) return { image: repoTags[0] ?? image }
  return { image }
}

/** A created container. @param facts its id, the image as the kubelet names it, and when it was created, in nanoseconds */
export function addContainer(
  state: State,
  sandbox: Sandbox,
  config: ContainerFacts,
  { id, imageRef, createdAt }: { readonly id: string; readonly imageRef: string; readonly createdAt: number },
): Container {
  const { metadata, image, labels, annotations } = config
  const shared = { id, metadata, image, imageRef, createdAt, labels, annotations, state: 'CONTAINER_CREATED' as const }
  const container: Container = {
    config,
    sandbox,
    logs: [],
    timers: new Set(),
    cpu: { untilMs: 0, usedNs: 0 },
    record: { ...shared, podSandboxId: sandbox.status.id },
    status: {
      ...shared,
      startedAt: 0,
      finishedAt: 0,
      exitCode: 0,
      reason: '',
      message: '',
      mounts: [],
      logPath: `${sandbox.config.logDirectory}/${config.logPath}`,
      imageId: imageRef,
      resources: null,
      user: null,
    },
  }
  state.containers.set(id, container)
  remember(state, sandbox.config.metadata.uid, id)
  return container
}

async function startContainer(state: State, id: string, context: CallContext | undefined): Promise<void> {
  const known = state.containers.get(id)
  await state.clock.sleep((known && behaviour(state, known).startDelayMs) ?? state.profile.startDelayMs, context?.signal)
  const container = state.containers.get(id)
  if (!container) throw new GrpcError('NOT_FOUND', `container "${id}" not found`)
  const does = behaviour(state, container)
  if (does.startError !== undefined) throw new GrpcError('UNKNOWN', does.startError)
  const startedMs = state.clock.now()
  setRunning(container, startedMs)
  const atStart: string[] = []
  for (const line of linesOf(container, does)) {
    if (typeof line === 'string') atStart.push(line)
    else after(state, container, line.afterMs, () => log(state, container, [line.text]))
  }
  if (atStart.length > 0) log(state, container, atStart)
  planEnding(state, container, does, 0)
  publish(state, id)
}

export function setRunning(container: Container, startedMs: number): void {
  container.cpu = { untilMs: startedMs, usedNs: 0 }
  container.status = { ...container.status, state: 'CONTAINER_RUNNING', startedAt: nanoseconds(startedMs) }
  container.record = { ...container.record, state: 'CONTAINER_RUNNING' }
}

/** What the container prints, if its behaviour does not define it: that it has started. */
export function linesOf({ config }: Container, does: SimulatedBehaviour): NonNullable<SimulatedBehaviour['logs']> {
  return does.logs ?? [`${config.metadata.name} started on a simulated node`]
}

/** Sets when and how a running container ends, instead of what was set before. */
export function planEnding(state: State, container: Container, does: SimulatedBehaviour, sinceStartMs: number): void {
  if (container.ending) {
    container.ending.cancel()
    container.timers.delete(container.ending)
  }
  const ending = endingOf(does, container.config)
  container.ending =
    ending && after(state, container, Math.max(0, ending.afterMs - sinceStartMs), () => finish(state, container, ending.exitCode, ending.reason))
}

/** The calls of CRI about containers. */
export function containerCalls(state: State): Containers {
  return {
    createContainer: async (podSandboxId, config) => createContainer(state, podSandboxId, config),
    startContainer: async (id, context) => startContainer(state, id, context),
    stopContainer: async (id, timeoutSeconds) => {
      const container = state.containers.get(id)
      if (container?.status.state !== 'CONTAINER_RUNNING') return
      const stopMs = behaviour(state, container).stopDelayMs ?? state.profile.stopDelayMs
      const isKilled = stopMs > timeoutSeconds * 1000
      await state.clock.sleep(isKilled ? timeoutSeconds * 1000 : stopMs)
      if (isKilled) finish(state, container, 137, 'Error')
      else finish(state, container, 0, 'Completed')
    },
    removeContainer: async (id) => removeContainer(state, id),
    containerStatus: async (id) => state.containers.get(id)?.status,
    listContainers: async (uid) => [...idsOf(state, uid, state.containers.keys())].flatMap((id) => state.containers.get(id)?.record ?? []),
    updateContainerResources: async (id, resources) => {
      const container = state.containers.get(id)
      if (!container) return
      // The time until now counts with the usage until now.
      if (container.status.state === 'CONTAINER_RUNNING') countCpu(state, container)
      container.config.linux.resources = { ...container.config.linux.resources, ...resources }
    },
    reopenContainerLog: async () => {},
    listContainerStats: async () =>
      [...state.containers.values()].filter((container) => container.status.state === 'CONTAINER_RUNNING').map((container) => stats(state, container)),
  }
}

/**
 * Adds the CPU time since the last look. The usage may change at any time, with the resources or by code: a product of usage and age would fall with it, and no
 * counter may. Nor does it fall when the clock is set back.
 */
export function countCpu(state: State, container: Container): { atMs: number; nanoCores: number; usedNs: number; memoryBytes: number } {
  const { cpuNanoCores: nanoCores, memoryBytes } = usageOf(container.config, behaviour(state, container))
  const atMs = state.clock.now()
  const { untilMs, usedNs } = container.cpu
  const passedMs = Math.max(0, atMs - untilMs)
  container.cpu = { untilMs: untilMs + passedMs, usedNs: usedNs + (nanoCores * passedMs) / 1000 }
  return { atMs, nanoCores, usedNs: container.cpu.usedNs, memoryBytes }
}

function stats(state: State, container: Container) {
  const { atMs, nanoCores, usedNs, memoryBytes } = countCpu(state, container)
  const timestamp = nanoseconds(atMs)
  const of = (value: number) => ({ value: Math.round(value) })
  return {
    attributes: { id: container.status.id, metadata: container.config.metadata, labels: container.config.labels, annotations: container.config.annotations },
    cpu: { timestamp, usageCoreNanoSeconds: of(usedNs), usageNanoCores: of(nanoCores) },
    memory: {
      timestamp,
      workingSetBytes: of(memoryBytes),
      usageBytes: of(memoryBytes),
      rssBytes: of(memoryBytes),
      pageFaults: of(0),
      majorPageFaults: of(0),
    },
    writableLayer: { timestamp, fsId: { mountpoint: '/' }, usedBytes: of(0), inodesUsed: of(0) },
  }
}
