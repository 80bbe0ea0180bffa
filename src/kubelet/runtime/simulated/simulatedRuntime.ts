/**
 * The RuntimeService without containers (L3): pods live in memory, follow a profile and cost next to nothing, so a process can hold
 * hundreds of nodes and run them in virtual time. Deterministic: time from the Clock, ids from Random. Upstream has no counterpart; KWOK is kin.
 */
import type { Clock, Timer } from '#base/clock'
import type { Random } from '#base/random'
import { CriError } from '#grpc/criError'
import type { ContainerConfig, PodSandboxConfig, PodSandboxStatus, RuntimeContainer, RuntimeContainerStatus, RuntimeImage } from '#grpc/criTypes'
import type { CallContext, Containers, Images, LogOptions, PodSandboxes, RuntimeEvent, RuntimeService, Streams } from '../runtimeService.ts'
import { defaultProfile, type SimulatedProfile } from './profile.ts'

export interface SimulatedRuntimeOptions {
  readonly clock: Clock
  readonly random: Random
  readonly profile?: SimulatedProfile | undefined
  /** The pods' addresses until the cluster assigns the node a range. Absent: the network is not ready before that, or before a moment has passed. */
  readonly podCidr?: string | undefined
}

/** What a simulated runtime can be told beyond what runtimes do: to misbehave. */
export interface SimulatedRuntime extends RuntimeService {
  /** The runtime reports itself unwell with this message, and the node becomes NotReady; undefined: well again. */
  setUnwell(message: string | undefined): void
  /** Ends running containers of a pod, as a crash (or the kernel, with reason OOMKilled) does; says how many. `container` absent: all. */
  exit(pod: { readonly namespace: string; readonly name: string }, ending: SimulatedEnding): number
}

export interface SimulatedEnding {
  readonly container?: string | undefined
  readonly exitCode: number
  readonly reason?: string | undefined
}

interface Sandbox {
  status: PodSandboxStatus
  config: PodSandboxConfig
}

interface Container {
  record: RuntimeContainer
  status: RuntimeContainerStatus
  config: ContainerConfig
  sandbox: Sandbox
  timer?: Timer | undefined
  logs: string[]
}

interface State {
  readonly clock: Clock
  readonly random: Random
  readonly profile: SimulatedProfile
  readonly sandboxes: Map<string, Sandbox>
  readonly containers: Map<string, Container>
  readonly byPod: Map<string, Set<string>>
  readonly images: Map<string, RuntimeImage>
  readonly listeners: Set<(event: RuntimeEvent) => void>
  readonly addresses: { cidr: string; next: number; assigned: boolean }
}

/** A cluster that assigns no ranges must not keep its nodes from becoming ready. */
const waitForCidrMs = 3_000

const nanoseconds = (ms: number) => ms * 1e6

/** A runtime that only pretends. */
export function createSimulatedRuntime(options: SimulatedRuntimeOptions): SimulatedRuntime {
  const state: State = {
    clock: options.clock,
    random: options.random,
    profile: options.profile ?? defaultProfile,
    sandboxes: new Map(),
    containers: new Map(),
    byPod: new Map(),
    images: new Map(),
    listeners: new Set(),
    addresses: { cidr: options.podCidr ?? '10.244.0.0/24', next: 1, assigned: options.podCidr !== undefined },
  }
  const startedMs = state.clock.monotonicMs()
  let unwell: string | undefined
  const statusListeners = new Set<() => void>()
  const statusChanged = () => {
    for (const listener of statusListeners) listener()
  }
  if (!state.addresses.assigned) state.clock.timer(waitForCidrMs, statusChanged)
  const networkReady = () => state.addresses.assigned || state.clock.monotonicMs() - startedMs >= waitForCidrMs
  return {
    name: 'containerd',
    usesHost: false,
    eventsAreComplete: true,
    version: async () => ({ runtimeName: 'simulated', runtimeVersion: '1.0.0', runtimeApiVersion: 'v1' }),
    status: async () => [
      unwell === undefined
        ? { type: 'RuntimeReady', status: true, reason: '', message: '' }
        : { type: 'RuntimeReady', status: false, reason: 'RuntimeUnwell', message: unwell },
      networkReady()
        ? { type: 'NetworkReady', status: true, reason: '', message: '' }
        : { type: 'NetworkReady', status: false, reason: 'NetworkPluginNotReady', message: 'no pod CIDR yet' },
    ],
    setUnwell: (message) => {
      unwell = message
      statusChanged()
    },
    onStatusChange: (listener) => {
      statusListeners.add(listener)
      return () => void statusListeners.delete(listener)
    },
    exit: (pod, ending) => exitContainers(state, pod, ending),
    events: (signal) => events(state, signal),
    updatePodCidr: (cidr) => {
      if (state.addresses.cidr !== cidr) Object.assign(state.addresses, { cidr, next: 1 })
      if (state.addresses.assigned) return
      state.addresses.assigned = true
      statusChanged()
    },
    ...sandboxCalls(state),
    ...containerCalls(state),
    ...streamCalls(state),
    ...imageCalls(state),
  }
}

function newId(random: Random): string {
  return Array.from({ length: 8 }, () => random.int(0x1_0000_0000).toString(16).padStart(8, '0')).join('')
}

function nextAddress(addresses: State['addresses']): string {
  const [base = '10.244.0.0', prefix = '24'] = addresses.cidr.split('/')
  const number = base.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
  const size = 2 ** (32 - Number(prefix))
  // The first address names the range, the second is a gateway's, the last is the broadcast's.
  addresses.next = addresses.next >= size - 2 ? 2 : addresses.next + 1
  const address = number + addresses.next
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.')
}

function publish(state: State, containerId: string): void {
  for (const listener of state.listeners) listener({ containerId })
}

async function* events(state: State, signal: AbortSignal): AsyncGenerator<RuntimeEvent> {
  const queue: RuntimeEvent[] = []
  let wake = () => {}
  const listener = (event: RuntimeEvent) => {
    queue.push(event)
    wake()
  }
  const onAbort = () => wake()
  state.listeners.add(listener)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    while (!signal.aborted) {
      const event = queue.shift()
      if (event) yield event
      else
        await new Promise<void>((resolve) => {
          wake = resolve
          if (queue.length > 0 || signal.aborted) resolve()
        })
    }
  } finally {
    state.listeners.delete(listener)
    signal.removeEventListener('abort', onAbort)
  }
}

function idsOf(state: State, uid: string | undefined, all: Iterable<string>): Iterable<string> {
  return uid === undefined ? all : (state.byPod.get(uid) ?? [])
}

function remember(state: State, uid: string, id: string): void {
  const ids = state.byPod.get(uid) ?? new Set()
  state.byPod.set(uid, ids.add(id))
}

function forget(state: State, uid: string, id: string): void {
  const ids = state.byPod.get(uid)
  ids?.delete(id)
  if (ids?.size === 0) state.byPod.delete(uid)
}

function sandboxCalls(state: State): PodSandboxes {
  return {
    runPodSandbox: async (config, runtimeHandler, context) => {
      await state.clock.sleep(state.profile.sandboxDelayMs, context?.signal)
      const id = newId(state.random)
      const hostNetwork = config.linux.securityContext.namespaceOptions.network === 'NODE'
      state.sandboxes.set(id, {
        config,
        status: {
          id,
          metadata: config.metadata,
          state: 'SANDBOX_READY',
          createdAt: nanoseconds(state.clock.now()),
          labels: config.labels,
          annotations: config.annotations,
          runtimeHandler,
          network: hostNetwork ? { ip: '', additionalIps: [] } : { ip: nextAddress(state.addresses), additionalIps: [] },
        },
      })
      remember(state, config.metadata.uid, id)
      publish(state, id)
      return id
    },
    stopPodSandbox: async (id) => {
      const sandbox = state.sandboxes.get(id)
      if (!sandbox) return
      for (const container of state.containers.values()) if (container.sandbox === sandbox) finish(state, container, 137, 'Error')
      sandbox.status = { ...sandbox.status, state: 'SANDBOX_NOTREADY', network: null }
      publish(state, id)
    },
    removePodSandbox: async (id) => {
      const sandbox = state.sandboxes.get(id)
      if (!sandbox) return
      for (const [containerId, container] of state.containers) if (container.sandbox === sandbox) removeContainer(state, containerId)
      state.sandboxes.delete(id)
      forget(state, sandbox.config.metadata.uid, id)
      publish(state, id)
    },
    podSandboxStatus: async (id) => state.sandboxes.get(id)?.status,
    listPodSandbox: async (uid) => [...idsOf(state, uid, state.sandboxes.keys())].flatMap((id) => state.sandboxes.get(id)?.status ?? []),
  }
}

function finish(state: State, container: Container, exitCode: number, reason: string): void {
  container.timer?.cancel()
  if (container.status.state !== 'CONTAINER_RUNNING' && container.status.state !== 'CONTAINER_CREATED') return
  container.status = { ...container.status, state: 'CONTAINER_EXITED', exitCode, reason, finishedAt: nanoseconds(state.clock.now()) }
  container.record = { ...container.record, state: 'CONTAINER_EXITED' }
  publish(state, container.status.id)
}

function exitContainers(state: State, pod: { readonly namespace: string; readonly name: string }, ending: SimulatedEnding): number {
  const { exitCode, reason = exitCode === 0 ? 'Completed' : 'Error' } = ending
  const running = [...state.containers.values()].filter(({ config, sandbox, status }) => {
    const { namespace, name } = sandbox.config.metadata
    const isMeant = ending.container === undefined || config.metadata.name === ending.container
    return isMeant && namespace === pod.namespace && name === pod.name && status.state === 'CONTAINER_RUNNING'
  })
  for (const container of running) finish(state, container, exitCode, reason)
  return running.length
}

function removeContainer(state: State, id: string): void {
  const container = state.containers.get(id)
  if (!container) return
  container.timer?.cancel()
  state.containers.delete(id)
  forget(state, container.sandbox.config.metadata.uid, id)
  publish(state, id)
}

function createContainer(state: State, podSandboxId: string, config: ContainerConfig): string {
  const sandbox = state.sandboxes.get(podSandboxId)
  if (!sandbox) throw new CriError('NOT_FOUND', `sandbox "${podSandboxId}" not found`)
  const id = newId(state.random)
  const createdAt = nanoseconds(state.clock.now())
  const shared = { id, metadata: config.metadata, image: { image: config.image.image }, imageRef: config.image.image, createdAt }
  const described = { labels: config.labels, annotations: config.annotations }
  state.containers.set(id, {
    config,
    sandbox,
    logs: [],
    record: { ...shared, ...described, podSandboxId, state: 'CONTAINER_CREATED' },
    status: {
      ...shared,
      ...described,
      state: 'CONTAINER_CREATED',
      startedAt: 0,
      finishedAt: 0,
      exitCode: 0,
      reason: '',
      message: '',
      mounts: [],
      logPath: `${sandbox.config.logDirectory}/${config.logPath}`,
      imageId: config.image.image,
      resources: null,
      user: null,
    },
  })
  remember(state, sandbox.config.metadata.uid, id)
  return id
}

function containerCalls(state: State): Containers {
  return {
    createContainer: async (podSandboxId, config) => createContainer(state, podSandboxId, config),
    startContainer: async (id, context) => {
      await state.clock.sleep(state.profile.startDelayMs, context?.signal)
      const container = state.containers.get(id)
      if (!container) throw new CriError('NOT_FOUND', `container "${id}" not found`)
      container.status = { ...container.status, state: 'CONTAINER_RUNNING', startedAt: nanoseconds(state.clock.now()) }
      container.record = { ...container.record, state: 'CONTAINER_RUNNING' }
      container.logs.push(`${container.config.metadata.name} started on a simulated node`)
      const { exitAfterMs, exitCode = 0, reason = exitCode === 0 ? 'Completed' : 'Error' } = state.profile.run(container.config, container.sandbox.config)
      if (exitAfterMs !== undefined) container.timer = state.clock.timer(exitAfterMs, () => finish(state, container, exitCode, reason))
      publish(state, id)
    },
    stopContainer: async (id) => {
      const container = state.containers.get(id)
      if (container?.status.state !== 'CONTAINER_RUNNING') return
      await state.clock.sleep(state.profile.stopDelayMs)
      finish(state, container, 0, 'Completed')
    },
    removeContainer: async (id) => removeContainer(state, id),
    containerStatus: async (id) => state.containers.get(id)?.status,
    listContainers: async (uid) => [...idsOf(state, uid, state.containers.keys())].flatMap((id) => state.containers.get(id)?.record ?? []),
    updateContainerResources: async (id, resources) => {
      const container = state.containers.get(id)
      if (container) container.config.linux.resources = { ...container.config.linux.resources, ...resources }
    },
    reopenContainerLog: async () => {},
    listContainerStats: async () =>
      [...state.containers.values()].filter((container) => container.status.state === 'CONTAINER_RUNNING').map((container) => stats(state, container)),
  }
}

function stats(state: State, container: Container) {
  const { cpuNanoCores, memoryBytes } = state.profile.usage(container.config, container.sandbox.config)
  const timestamp = nanoseconds(state.clock.now())
  const ranForSeconds = (timestamp - container.status.startedAt) / 1e9
  const of = (value: number) => ({ value: Math.round(value) })
  return {
    attributes: { id: container.status.id, metadata: container.config.metadata, labels: container.config.labels, annotations: container.config.annotations },
    cpu: { timestamp, usageCoreNanoSeconds: of(cpuNanoCores * ranForSeconds), usageNanoCores: of(cpuNanoCores) },
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

function streamCalls(state: State): Streams {
  const get = (id: string): Container => {
    const container = state.containers.get(id)
    if (container?.status.state !== 'CONTAINER_RUNNING') throw new CriError('NOT_FOUND', `container "${id}" is not running`)
    return container
  }
  const explain = (name: string, words: readonly string[]) => `${words.join(' ')}: not run, container ${name} is simulated\n`
  return {
    execSync: async (id, command) => {
      const container = get(id)
      return { stdout: new Uint8Array(), stderr: new Uint8Array(), exitCode: state.profile.execExitCode(container.config, command) }
    },
    exec: async (id, command) => {
      const container = get(id)
      return {
        serve: async (session) => {
          session.stdout?.write(explain(container.config.metadata.name, command))
          await session.finish({ exitCode: state.profile.execExitCode(container.config, command) })
        },
      }
    },
    attach: async (id) => {
      const container = get(id)
      return {
        serve: async (session) => {
          session.stdout?.write(`${container.logs.join('\n')}\n`)
          await session.finish({ exitCode: 0 })
        },
      }
    },
    portForward: async () => ({ connect: async (port) => Promise.reject(new CriError('UNAVAILABLE', `port ${port}: nothing listens in a simulated pod`)) }),
    logs: (status, options, signal) => simulatedLogs(state, status, options, signal),
  }
}

async function* simulatedLogs(state: State, status: RuntimeContainerStatus, options: LogOptions, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const container = state.containers.get(status.id)
  const lines = container?.logs.slice(options.tailLines === undefined ? 0 : Math.max(0, container.logs.length - options.tailLines)) ?? []
  const text = lines.map((line) => `${line}\n`).join('')
  if (text) yield Buffer.from(text).subarray(0, options.limitBytes)
  if (!options.follow) return
  for await (const event of events(state, signal)) {
    if (event.containerId === status.id && state.containers.get(status.id)?.status.state !== 'CONTAINER_RUNNING') return
  }
}

function imageCalls(state: State): Images {
  return {
    listImages: async () => [...state.images.values()],
    imageStatus: async (image) => state.images.get(image),
    pullImage: async (image, _auth, _sandbox, context?: CallContext) => {
      await state.clock.sleep(state.profile.pullDelayMs, context?.signal)
      const failure = state.profile.pullError(image)
      if (failure !== undefined) throw new CriError('NOT_FOUND', failure)
      const id = `sha256:${newId(state.random)}`
      state.images.set(image, { id, repoTags: [image], repoDigests: [], size: state.profile.imageSizeBytes, uid: null, username: '', pinned: false })
      return image
    },
    removeImage: async (image) => {
      for (const [name, entry] of state.images) if (name === image || entry.id === image) state.images.delete(name)
    },
    imageFilesystem: async () => undefined,
  }
}
