/**
 * Watches over nodes (L3): a node that falls silent becomes Unknown, its pods not ready, and taints follow the conditions, those that evict only as
 * fast as the state of its zone allows. Evicting is taintEviction.ts' work. Upstream: pkg/controller/nodelifecycle (v1.36).
 */
import type { Lease } from '#api/gen/types/coordination.v1'
import type { Node, Taint } from '#api/gen/types/core.v1'
import { isNodeReady } from '#api/helpers/nodes'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import type { Timer } from '#base/clock'
import { leases, nodes } from '#client/builtIn'
import type { EventHandler } from '#client/cache/sharedInformer'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createPeriodicCheck } from '../framework/periodicCheck.ts'
import { createReconciler, enqueueSelf } from '../framework/reconciler.ts'
import { hasEvictingTaint, msUntilSilent, type NodeHealth, observeNode, silentConditions, wantedLabels, wantedTaints } from './health.ts'
import { createMarkPods, unlessOvertaken } from './markPods.ts'
import { createZoneMetrics } from './zoneMetrics.ts'
import { censusOf, createZoneEvictor, defaultZoneOptions, zoneKey } from './zones.ts'

export interface NodeEviction {
  /** Nodes a second. Default 0.1. */
  readonly evictionRate?: number
  /** Nodes a second of a large zone that is partly disrupted. Default 0.01. */
  readonly secondaryEvictionRate?: number
  /** Default 50. */
  readonly largeClusterSizeThreshold?: number
  /** Default 0.55. */
  readonly unhealthyZoneThreshold?: number
}

export interface NodeLifecycleOptions {
  /** Default 5 s. */
  readonly nodeMonitorPeriodMs?: number | undefined
  /** Default 50 s. */
  readonly nodeMonitorGracePeriodMs?: number | undefined
  /** Default 60 s. */
  readonly nodeStartupGracePeriodMs?: number | undefined
  /** Rates at which pods are evicted from nodes: upstream's --node-eviction-rate, --secondary-node-eviction-rate and thresholds. */
  readonly nodeEviction?: NodeEviction | undefined
}

export const nodeLifecycle: ControllerDescriptor<NodeLifecycleOptions> = {
  name: 'node-lifecycle-controller',
  aliases: ['nodelifecycle'],
  serviceAccount: 'node-controller',
  create: createNodeLifecycleController,
}

const leaseNamespace = 'kube-node-lease'
/** How often a waiting node's turn is looked for. */
const evictionPeriodMs = 100

function timesOf(options: NodeLifecycleOptions) {
  const { nodeMonitorPeriodMs: periodMs = 5_000, nodeMonitorGracePeriodMs: gracePeriodMs = 50_000, nodeStartupGracePeriodMs = 60_000 } = options
  return { periodMs, grace: { gracePeriodMs, startupGracePeriodMs: nodeStartupGracePeriodMs } }
}

function createNodeLifecycleController(context: ControllerContext, options: NodeLifecycleOptions) {
  const { client, clock } = context
  const { periodMs, grace } = timesOf(options)
  const informer = context.informers.of(nodes)
  const leaseInformer = context.informers.of(leases)
  const events = context.events('node-controller')
  const markPods = createMarkPods(context, events)
  const healths = new Map<string, NodeHealth>()
  const evictor = createZoneEvictor(clock, { ...defaultZoneOptions, ...options.nodeEviction })
  const zoneMetrics = createZoneMetrics(context.metrics, clock)
  /** Nodes that the rate limit has admitted for eviction. */
  const granted = new Set<string>()
  let turns: Timer | undefined
  const reconciler = createReconciler(context, { name: nodeLifecycle.name, queueName: 'node_lifecycle_controller', workers: 8, reconcile })
  const look = (signal: AbortSignal) => zoneMetrics.timed('all', () => monitor(signal))
  const { changed, run } = createPeriodicCheck(context, { name: nodeLifecycle.name, periodMs, check: look })
  reconciler.watch(informer, {
    ...enqueueSelf<Node>(reconciler.queue),
    onDelete: (node) => {
      const { name = '' } = node.metadata
      healths.delete(name)
      granted.delete(name)
      markPods.speaksAgain(name)
      evictor.remove(name)
      events.event(node, 'Normal', 'RemovingNode', `Node ${name} event: Removing Node ${name} from Controller`)
    },
  })
  reconciler.watch(informer, { onAdd: changed, onUpdate: changed, onDelete: changed })
  reconciler.watch(leaseInformer, ofNodes(changed))
  reconciler.needs(markPods.informer)
  reconciler.also((signal) => run(signal).finally(() => turns?.cancel()))
  return reconciler

  function taintsOf(node: Frozen<Node>): Taint[] | undefined {
    const { name = '' } = node.metadata
    const evicting = !evictor.allOut() && (granted.has(name) || hasEvictingTaint(node))
    return wantedTaints(node, evicting, clock.now())
  }

  /** Taints and labels follow conditions as they change. */
  async function reconcile(name: string, signal: AbortSignal): Promise<undefined> {
    const node = informer.store.get(name)
    if (!node) return
    isOut(node)
    const body = changeOf(node, taintsOf(node))
    if (!body) return
    const evictedFrom = hasEvictingTaint(node)
    const after = await client.of(nodes).patch({ name }, 'merge', body, { signal })
    if (!evictedFrom && hasEvictingTaint(after)) zoneMetrics.evicted(zoneKey(node))
  }

  /** A node that is ready again does not wait any more. */
  function isOut(node: Frozen<Node>): boolean {
    const { name = '' } = node.metadata
    if (['False', 'Unknown'].includes(readyStatus(node) ?? '')) return true
    granted.delete(name)
    evictor.remove(name)
    return false
  }

  function takeTurns(): void {
    turns?.cancel()
    turns = undefined
    for (const { node } of evictor.take()) {
      granted.add(node)
      reconciler.queue.add(node)
    }
    if (evictor.isWaiting()) turns = clock.timer(evictionPeriodMs, takeTurns)
  }

  /** Finds nodes that stopped reporting, for which there is no event. Returns the milliseconds until the next grace period ends. */
  async function monitor(signal: AbortSignal): Promise<number> {
    const nowMs = clock.now()
    const current: Frozen<Node>[] = []
    for (const node of informer.store.list()) current.push(await zoneMetrics.timed('node', () => checkNode(node, nowMs, signal)))
    updateZones(current)
    return informer.store.list().reduce((ms, node) => Math.min(ms, msUntilSilent(node, healths.get(node.metadata.name ?? ''), grace, nowMs)), Infinity)
  }

  /** @returns the node as it is from now on: the cache gets the writes later */
  async function checkNode(node: Frozen<Node>, nowMs: number, signal: AbortSignal): Promise<Frozen<Node>> {
    const { name = '' } = node.metadata
    const before = healths.get(name)
    if (!before) events.event(node, 'Normal', 'RegisteredNode', `Node ${name} event: Registered Node ${name} in Controller`)
    const health = observeNode(before, node, leaseInformer.lister.get({ namespace: leaseNamespace, name }), nowMs)
    healths.set(name, health)
    const conditions = silentConditions(node, health, grace, nowMs)
    const silent = { ...node, status: { ...node.status, conditions } } as Frozen<Node>
    if (conditions) await client.of(nodes).updateStatus(silent, { signal }).catch(unlessOvertaken)
    if (conditions && isNodeReady(node)) events.event(node, 'Normal', 'NodeNotReady', `Node ${name} status is now: NodeNotReady`)
    // A kubelet that reports its own node as not ready still reports its pods.
    if (conditions || readyStatus(node) === 'Unknown') await markPods.notReady(name, signal)
    else markPods.speaksAgain(name)
    return conditions ? silent : node
  }

  /** Eviction from a node also depends on the other nodes of its zone. */
  function updateZones(all: readonly Frozen<Node>[]): void {
    const census = censusOf(all)
    zoneMetrics.observe(census)
    if (evictor.update(census).recovered) {
      // While all nodes were unreachable, this controller was cut off: restart their grace periods.
      for (const [name, health] of healths) healths.set(name, { ...health, probeMs: clock.now() })
    }
    if (evictor.allOut()) granted.clear()
    for (const node of all) {
      const { name = '' } = node.metadata
      // Only here, after the zone's state is known.
      if (isOut(node) && !granted.has(name) && !hasEvictingTaint(node)) evictor.add(zoneKey(node), name)
      if (taintsOf(node)) reconciler.queue.add(name)
    }
    takeTurns()
  }
}

/** Components that elect a leader renew theirs every few seconds. */
function ofNodes(changed: () => void): EventHandler<Lease> {
  const handle = ({ metadata }: Frozen<Lease>) => {
    if (metadata.namespace === leaseNamespace) changed()
  }
  return { onAdd: handle, onUpdate: (_, lease) => handle(lease), onDelete: handle }
}

function readyStatus({ status }: Frozen<Node>): string | undefined {
  return findCondition(status?.conditions, 'Ready')?.status
}

/** Labels and taints that the node lacks; undefined: none. */
function changeOf(node: Frozen<Node>, taints: Taint[] | undefined) {
  const labels = wantedLabels(node)
  if (!taints && !labels) return undefined
  const { resourceVersion } = node.metadata
  return { metadata: { resourceVersion, ...(labels ? { labels } : {}) }, ...(taints ? { spec: { taints } } : {}) }
}
