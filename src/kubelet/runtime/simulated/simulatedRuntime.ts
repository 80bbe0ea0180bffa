/**
 * The RuntimeService without containers (L3): pods exist in memory only and follow a profile. They cost very little, so that a process can have
 * hundreds of nodes and run them in virtual time. Deterministic: time from the Clock, ids from Random. Upstream has no counterpart.
 * In order: annotations.ts and profile.ts define the behaviour (behaviour.ts), state.ts has the pods, the other files are the runtime's calls by subject.
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Random } from '#base/random'
import type { RuntimeService } from '../../core/runtimeService.ts'
import { adoptPod } from './adoption.ts'
import { takeAnnotations } from './annotationChanges.ts'
import { containerCalls } from './containers.ts'
import { imageCalls } from './images.ts'
import { lastLines } from './logLines.ts'
import { defaultProfile, type SimulatedProfile } from './profile.ts'
import { sandboxCalls } from './sandboxes.ts'
import { events, finish, log, runningContainers, type State } from './state.ts'
import { streamCalls } from './streams.ts'

export interface SimulatedRuntimeOptions {
  readonly clock: Clock
  readonly random: Random
  readonly profile?: SimulatedProfile | undefined
  /** The pods' addresses until the cluster assigns the node a range. Absent: the network is not ready before that, or before a moment has passed. */
  readonly podCidr?: string | undefined
}

/** A RuntimeService with additional calls that cause failures. */
export interface SimulatedRuntime extends RuntimeService {
  /** The runtime reports itself unwell with this message, and the node becomes NotReady; undefined: well again. */
  setUnwell(message: string | undefined): void
  /** Ends running containers of a pod, as a crash (or the kernel, with reason OOMKilled) does; returns their number. `container` absent: all. */
  exit(pod: { readonly namespace: string; readonly name: string }, ending: SimulatedEnding): number
  /** Running containers of the pod follow its annotations, as they are now. */
  takeAnnotations(pod: Frozen<Pod>): void
  /** Continues a pod that an earlier process ran, as its status reports it, unless this runtime has it already. */
  adopt(pod: Frozen<Pod>): void
  /** Lets running containers of a pod print a text; returns their number. `container` absent: all. */
  log(pod: { readonly namespace: string; readonly name: string }, text: string, container?: string): number
}

export interface SimulatedEnding {
  readonly container?: string | undefined
  readonly exitCode: number
  readonly reason?: string | undefined
}

/** A cluster that assigns no ranges must not keep its nodes from becoming ready. */
const waitForCidrMs = 3_000

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
    failedPulls: new Map(),
    listeners: new Set(),
    addresses: { cidr: options.podCidr ?? '10.244.0.0/24', next: 1, assigned: options.podCidr !== undefined, used: new Set() },
  }
  let unwell: string | undefined
  const statusListeners = new Set<() => void>()
  const statusChanged = () => {
    for (const listener of statusListeners) listener()
  }
  // A timer may fire a fraction of a millisecond before its time by another clock: it counts itself.
  let hasWaited = false
  const stopWaiting = () => {
    hasWaited = true
    statusChanged()
  }
  if (!state.addresses.assigned) state.clock.timer(waitForCidrMs, stopWaiting)
  const networkReady = () => state.addresses.assigned || hasWaited
  return {
    name: 'simulated',
    usesHost: false,
    eventsAreComplete: true,
    version: async () => ({ runtimeName: 'simulated', runtimeVersion: '1.0.0', runtimeApiVersion: 'v1' }),
    status: async () => ({
      conditions: [
        unwell === undefined
          ? { type: 'RuntimeReady', status: true, reason: '', message: '' }
          : { type: 'RuntimeReady', status: false, reason: 'RuntimeUnwell', message: unwell },
        networkReady()
          ? { type: 'NetworkReady', status: true, reason: '', message: '' }
          : { type: 'NetworkReady', status: false, reason: 'NetworkPluginNotReady', message: 'no pod CIDR yet' },
      ],
      handlers: [],
    }),
    setUnwell: (message) => {
      unwell = message
      statusChanged()
    },
    onStatusChange: (listener) => {
      statusListeners.add(listener)
      return () => void statusListeners.delete(listener)
    },
    exit: (pod, { container, exitCode, reason = exitCode === 0 ? 'Completed' : 'Error' }) => {
      const running = runningContainers(state, pod, container)
      for (const one of running) finish(state, one, exitCode, reason)
      return running.length
    },
    takeAnnotations: (pod) => takeAnnotations(state, pod),
    adopt: (pod) => adoptPod(state, pod),
    log: (pod, text, container) => {
      const running = runningContainers(state, pod, container)
      const lines = lastLines(text)
      for (const one of running) log(state, one, lines)
      return running.length
    },
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
