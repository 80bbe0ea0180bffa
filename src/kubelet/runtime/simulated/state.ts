/** What a simulated runtime holds in memory, and how a container in it ends (L3). */
import type { Clock, Timer } from '#base/clock'
import type { Random } from '#base/random'
import type { PodSandboxStatus, RuntimeContainer, RuntimeContainerStatus, RuntimeImage } from '#grpc/criTypes'
import type { RuntimeEvent } from '../../core/runtimeService.ts'
import type { SimulatedBehaviour } from './behaviour.ts'
import type { ContainerFacts, SandboxFacts } from './facts.ts'
import { maxLogLines } from './logLines.ts'
import { behaviourOf, type SimulatedProfile } from './profile.ts'

export interface Sandbox {
  status: PodSandboxStatus
  config: SandboxFacts
}

export interface LogLine {
  readonly atMs: number
  readonly text: string
}

export interface Container {
  record: RuntimeContainer
  status: RuntimeContainerStatus
  config: ContainerFacts
  sandbox: Sandbox
  /** Timers of its exit and of later log lines. */
  readonly timers: Set<Timer>
  /** That of its exit. */
  ending?: Timer | undefined
  logs: LogLine[]
  /** CPU time from the start until that moment. */
  cpu: { readonly untilMs: number; readonly usedNs: number }
}

export interface Addresses {
  cidr: string
  next: number
  assigned: boolean
  /** Those of sandboxes. */
  readonly used: Set<string>
}

export interface State {
  readonly clock: Clock
  readonly random: Random
  readonly profile: SimulatedProfile
  readonly sandboxes: Map<string, Sandbox>
  readonly containers: Map<string, Container>
  readonly byPod: Map<string, Set<string>>
  readonly images: Map<string, RuntimeImage>
  readonly listeners: Set<(event: RuntimeEvent) => void>
  readonly addresses: Addresses
  /** How often pulls of a pod's image have failed on purpose, by pod uid and image. */
  readonly failedPulls: Map<string, number>
}

export const nanoseconds = (ms: number): number => ms * 1e6

/** How far the log may exceed its limit before the oldest lines are dropped, all at once: dropping one line moves all others. */
const spareLogLines = maxLogLines / 10

export function newId(random: Random): string {
  return Array.from({ length: 8 }, () => random.int(0x1_0000_0000).toString(16).padStart(8, '0')).join('')
}

export function publish(state: State, containerId: string): void {
  for (const listener of state.listeners) listener({ containerId })
}

/** What happens to containers from now on, until aborted. A container that changes again before it is read is reported once. */
export async function* events(state: State, signal: AbortSignal): AsyncGenerator<RuntimeEvent> {
  let changed = new Set<string>()
  let wake = () => {}
  const listener = ({ containerId }: RuntimeEvent) => {
    changed.add(containerId)
    wake()
  }
  const onAbort = () => wake()
  state.listeners.add(listener)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    while (!signal.aborted) {
      const batch = changed
      changed = new Set()
      for (const containerId of batch) {
        if (signal.aborted) return
        yield { containerId }
      }
      await new Promise<void>((resolve) => {
        wake = resolve
        if (changed.size > 0 || signal.aborted) resolve()
      })
    }
  } finally {
    state.listeners.delete(listener)
    signal.removeEventListener('abort', onAbort)
  }
}

export function idsOf(state: State, uid: string | undefined, all: Iterable<string>): Iterable<string> {
  return uid === undefined ? all : (state.byPod.get(uid) ?? [])
}

export function remember(state: State, uid: string, id: string): void {
  const ids = state.byPod.get(uid) ?? new Set()
  state.byPod.set(uid, ids.add(id))
}

export function forget(state: State, uid: string, id: string): void {
  const ids = state.byPod.get(uid)
  ids?.delete(id)
  if (ids?.size === 0) state.byPod.delete(uid)
}

/** The container's behaviour now: code may return another one at each call. */
export function behaviour(state: State, { config, sandbox }: Pick<Container, 'config' | 'sandbox'>): SimulatedBehaviour {
  return behaviourOf(state.profile, config, sandbox.config, state.random)
}

/** Appends lines to the container's log and reports one change. */
export function log(state: State, container: Container, lines: readonly string[]): void {
  const { logs } = container
  const atMs = state.clock.now()
  for (const text of lines.slice(-maxLogLines)) logs.push({ atMs, text })
  if (logs.length > maxLogLines + spareLogLines) logs.splice(0, logs.length - maxLogLines)
  publish(state, container.status.id)
}

/** Acts later, unless the container ends before. */
export function after(state: State, container: Container, ms: number, act: () => void): Timer {
  const timer = state.clock.timer(ms, () => {
    container.timers.delete(timer)
    act()
  })
  container.timers.add(timer)
  return timer
}

export function forgetTimers(container: Container): void {
  for (const timer of container.timers) timer.cancel()
  container.timers.clear()
}

/** Ends it, unless it has ended. */
export function finish(state: State, container: Container, exitCode: number, reason: string): void {
  forgetTimers(container)
  if (container.status.state !== 'CONTAINER_RUNNING' && container.status.state !== 'CONTAINER_CREATED') return
  container.status = { ...container.status, state: 'CONTAINER_EXITED', exitCode, reason, finishedAt: nanoseconds(state.clock.now()) }
  container.record = { ...container.record, state: 'CONTAINER_EXITED' }
  publish(state, container.status.id)
}

/** The running containers of a pod; `container` absent: all. */
export function runningContainers(state: State, pod: { readonly namespace: string; readonly name: string }, container: string | undefined): Container[] {
  return [...state.containers.values()].filter(({ config, sandbox, status }) => {
    const { namespace, name } = sandbox.config.metadata
    const isMeant = container === undefined || config.metadata.name === container
    return isMeant && namespace === pod.namespace && name === pod.name && status.state === 'CONTAINER_RUNNING'
  })
}
