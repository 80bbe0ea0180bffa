/**
 * Simulated nodes (L5): the same kubelet over a runtime that starts no processes, many in one process. They share their watches, the queue of their events, and
 * the loopback port that serves logs and exec. Nodes are added and removed while the others run.
 */

import { simulatedFailure } from '#api/helpers/nodes'
import { isStatus } from '#api/machinery/status'
import { type AbortScope, abortScope, deadlineScope } from '#base/abortScope'
import type { Component } from '#base/component'
import { messageOf } from '#base/messageOf'
import { unlessAborted } from '#base/orAborted'
import { createWakeUp } from '#base/wakeUp'
import { nodes as nodeResource } from '#client/builtIn'
import type { Client } from '#client/client'
import { createEventWriter } from '#client/eventRecorder'
import type { KubeletDeps } from '#kubelet/core/context'
import type { KubeletSources } from '#kubelet/core/kubeletSources'
import { createKubelet, type Kubelet } from '#kubelet/kubelet'
import { adoptingPods } from '#kubelet/runtime/simulated/adoption'
import { tellingAnnotations } from '#kubelet/runtime/simulated/annotationChanges'
import { simulatedNodeAddress } from '#kubelet/runtime/simulated/machine'
import { createSimulatedRuntime, type SimulatedRuntime } from '#kubelet/runtime/simulated/simulatedRuntime'
import { traceRuntime } from '#kubelet/runtime/tracedRuntime'
import { apiAuth } from '#kubelet/server/auth'
import { type Handlers, handlersOf, type KubeletServer } from '#kubelet/server/kubeletServer'
import { createSharedKubeletServer } from '#kubelet/server/sharedKubeletServer'
import { createResourceSampler } from '#kubelet/server/stats/resourceSample'
import { createSharedSources } from '#kubelet/sources/sharedSources'
import { standBy } from '#kubelet/standBy'
import { freePort } from '../localCluster/freePort.ts'
import type { PlannedNode } from '../localCluster/simulatedPlan.ts'
import type { OwnKubelets } from './ownKubelets.ts'
import { type ProcessTools, runTogether } from './processTools.ts'
import { simulatedNodeConfig } from './simulatedNodeConfig.ts'

export interface SimulatedNodesOptions {
  /** The planned nodes; undefined when the cluster has no description any more. */
  planned(): Promise<readonly PlannedNode[] | undefined>
  /** Names of nodes that were removed from the plan, and whose Node objects may still be there. */
  removed(): Promise<readonly string[]>
  readonly tools: ProcessTools
  /** Records where the API server reaches each kubelet. */
  readonly ownKubelets: OwnKubelets
  /** A client with the identity of that node. */
  clientOf(nodeName: string): Client
  /** Reads what the watches of all nodes share, and deletes the Nodes of removed ones. */
  readonly manager: Client
  readonly clusterDns: string
  readonly clusterDomain: string
  /** The cluster has real nodes too: only pods that tolerate the taint are scheduled here. */
  readonly tainted: boolean
  /** A serving certificate for the loopback address, and who may show client certificates. */
  readonly serving: { readonly cert: string; readonly key: string; readonly clientCa: string }
  /** Calls back when the planned nodes or the certificate may have changed. */
  readonly onLook: (apply: () => void) => void
}

const listensOn = '127.0.0.1'
/** Nodes that register at the same time, and Nodes that are deleted at the same time. */
const mostAtOnce = 32
/** Until the deletion of a Node that failed is tried again. */
const deleteAgainMs = 5_000
/** So long a node keeps others from registering. */
const registrationMs = 5_000
const mostQueuedEvents = 100_000

export function createSimulatedNodes(options: SimulatedNodesOptions): Component {
  let server: KubeletServer | undefined
  const changes = createWakeUp()
  options.onLook(() => {
    server?.setTls(options.serving)
    changes.ring()
  })
  return {
    name: 'simulated nodes',
    run: async (signal) => {
      let fleet: Fleet | undefined
      while (!signal.aborted) {
        const [planned, removed] = await Promise.all([options.planned(), options.removed()])
        if (planned && (fleet || planned.length + removed.length > 0)) {
          fleet ??= await createFleet(options, signal)
          server = fleet.server
          await fleet.become(planned, removed)
        }
        await changes.wait(signal)
      }
      await fleet?.settled()
    },
  }
}

interface Fleet {
  readonly server: KubeletServer
  /** Begins to start and to remove nodes, so that these are left. Waits for none of them. */
  become(planned: readonly PlannedNode[], removed: readonly string[]): Promise<void>
  /** Resolves when all kubelets have stopped, after the signal. */
  settled(): Promise<void>
}

interface Running {
  readonly address: string
  readonly stop: AbortScope
  readonly done: Promise<void>
}

async function createFleet(options: SimulatedNodesOptions, signal: AbortSignal): Promise<Fleet> {
  const { tools, ownKubelets, serving } = options
  const port = await freePort()
  const kubelets = new Map<string, () => Handlers>()
  const server = createSharedKubeletServer((address) => kubelets.get(address)?.(), { address: listensOn, port, ...serving })
  const sources = createSharedSources({ ...tools, client: options.manager }, signal)
  const eventWriter = createEventWriter(tools, mostQueuedEvents, signal)
  const nodes = new Map<string, Running>()
  /** Removals that are under way, by the name of the node. */
  const leaving = new Map<string, Promise<void>>()
  const [registering, deleting] = [createTurns(mostAtOnce), createTurns(mostAtOnce)]
  const serverDone = runTogether([server], tools, signal)

  /** Nodes that this process has had. One that comes back under its name has lost what ran on it; before that, its pods are those of an earlier process. */
  const had = new Set<string>()

  const createNode = (node: PlannedNode, address: string, until: AbortSignal): Kubelet => {
    const { name } = node
    const adopts = !had.has(name)
    had.add(name)
    const client = options.clientOf(name)
    const log = tools.log.with('kubelet', { node: name })
    const kubelet = simulatedKubelet(options, { ...tools, client, log, sources, eventWriter }, node, { address, port, adopts })
    let handlers: Handlers | undefined
    const auth = apiAuth(client, tools.clock, name)
    // A request wakes the whole kubelet only when its user may make it.
    const make = () => handlersOf({ view: kubelet.view, auth, clock: tools.clock, log, onAdmitted: kubelet.wake }, until)
    kubelets.set(address, () => (handlers ??= make()))
    return kubelet
  }

  /** Runs the node, after one of its name that is being removed is gone. */
  const run = async (node: PlannedNode, address: string, until: AbortSignal): Promise<void> => {
    await leaving.get(node.name)
    let done: Promise<void> | undefined
    await registering(async () => {
      if (until.aborted) return
      const kubelet = createNode(node, address, until)
      done = runTogether([kubelet], tools, until)
      using turn = deadlineScope({ clock: tools.clock, ms: registrationMs }, until)
      await unlessAborted(kubelet.registered, turn.signal)
    })
    await done
  }

  const start = (node: PlannedNode): void => {
    const address = simulatedNodeAddress(node.number)
    const stop = abortScope(signal)
    ownKubelets.add(node.name, { address, port, listensOn })
    nodes.set(node.name, { address, stop, done: run(node, address, stop.signal) })
  }

  /** @returns whether the Node is gone */
  const deleteNode = async (name: string): Promise<boolean> => {
    try {
      await options.manager.of(nodeResource).delete({ name }, { signal })
      return true
    } catch (error) {
      if (isStatus(error, 'NotFound')) return true
      if (!signal.aborted) tools.log.warn('Deleting the Node of a removed simulated node failed', { node: name, error: messageOf(error) })
      return false
    }
  }

  const untilDeleted = async (name: string): Promise<void> => {
    while (!signal.aborted) {
      let isGone = false
      await deleting(async () => {
        isGone = await deleteNode(name)
      })
      if (isGone) return
      await unlessAborted(tools.clock.sleep(deleteAgainMs, signal), signal)
    }
  }

  const leave = (name: string, done: Promise<void>): void => {
    const gone = done
      .then(() => untilDeleted(name))
      .then(() => {
        if (leaving.get(name) === gone) leaving.delete(name)
      })
    leaving.set(name, gone)
  }

  const remove = (name: string, { address, stop, done }: Running): void => {
    nodes.delete(name)
    // A new node may get the address at once.
    kubelets.delete(address)
    ownKubelets.remove(name)
    stop.abort()
    leave(name, done)
  }

  /** Nodes whose removal another process, or an earlier one, began. */
  const known = new Set<string>()
  const leaveRemoved = (names: readonly string[], wanted: ReadonlySet<string>): void => {
    for (const name of names) {
      if (wanted.has(name) || leaving.has(name) || known.has(name)) continue
      known.add(name)
      leave(name, Promise.resolve())
    }
  }

  return {
    server,
    become: async (planned, removed) => {
      const wanted = new Set(planned.map(({ name }) => name))
      const unwanted = [...nodes].filter(([name]) => !wanted.has(name))
      const missing = planned.filter(({ name }) => !nodes.has(name))
      for (const [name, running] of unwanted) remove(name, running)
      leaveRemoved(removed, wanted)
      for (const node of missing) start(node)
      if (unwanted.length + missing.length > 0) await ownKubelets.publish()
    },
    settled: async () => {
      await Promise.all([serverDone, ...[...nodes.values()].map(({ done }) => done), ...leaving.values()])
    },
  }
}

/** Work waits for its turn while `most` others are at work. */
function createTurns(most: number): (work: () => Promise<void>) => Promise<void> {
  let free = most
  const waiting: (() => void)[] = []
  return async (work) => {
    if (free > 0) free--
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else free++
    }
  }
}

type SharedDeps = Omit<KubeletDeps, 'runtime' | 'machine' | 'sources'> & { readonly sources: KubeletSources }

function simulatedKubelet(
  { tools, ...options }: SimulatedNodesOptions,
  deps: SharedDeps,
  node: PlannedNode,
  { address, port, adopts }: { readonly address: string; readonly port: number; readonly adopts: boolean },
): Kubelet {
  const { machine, config } = simulatedNodeConfig(node, options.tainted)
  const { nodeName } = config
  const runtime = createSimulatedRuntime({ clock: tools.clock, random: tools.random })
  const { node: nodeSource, pods: podSource } = deps.sources
  const pods = adopts ? adoptingPods(podSource, runtime, deps.log) : podSource
  const sources = { ...deps.sources, node: failingByAnnotation(nodeSource, runtime), pods: tellingAnnotations(pods, runtime) }
  const kubelet = createKubelet(
    { ...deps, sources, runtime: traceRuntime(runtime, tools.trace, nodeName), machine },
    {
      ...config,
      nodeIPs: [address],
      port,
      clusterDNS: [options.clusterDns],
      clusterDomain: options.clusterDomain,
      // A simulated runtime reports every change: relisting finds nothing more.
      relistPeriodMs: 0,
      syncFrequencyMs: 0,
    },
    standBy,
  )
  options.ownKubelets.addMeter(nodeName, createResourceSampler(kubelet.view, tools.clock))
  return kubelet
}

/** Characters of the annotation that the Node's condition repeats. */
const mostOfFailure = 256

/** Lets the runtime fail while the Node has the annotation for that. */
function failingByAnnotation(follow: KubeletSources['node'], runtime: SimulatedRuntime): KubeletSources['node'] {
  let failure: string | undefined
  return (nodeName, signal, onChange) =>
    follow(nodeName, signal, (node) => {
      const wanted = node.metadata.annotations?.[simulatedFailure]?.slice(0, mostOfFailure)
      if (wanted !== failure) runtime.setUnwell(wanted)
      failure = wanted
      onChange(node)
    })
}
