/**
 * Watches over nodes (L3): a node that falls silent becomes Unknown, its pods not ready, and taints follow the conditions. Evicting is
 * taintEviction.ts' work. Upstream: pkg/controller/nodelifecycle (v1.36).
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { isNodeReady } from '#api/helpers/nodes'
import { isPodReady, isPodTerminal } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { formatTime } from '#base/time'
import { leases, nodes, pods } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf, everyPeriod } from '../framework/reconciler.ts'
import { nodeNameIndex, podNodeIndexers } from '../shared/indexes.ts'
import { type NodeHealth, observeNode, silentConditions, wantedTaints } from './health.ts'

export const nodeLifecycle: ControllerDescriptor = {
  name: 'node-lifecycle-controller',
  aliases: ['nodelifecycle'],
  serviceAccount: 'node-controller',
  create: createNodeLifecycleController,
}

const leaseNamespace = 'kube-node-lease'

function createNodeLifecycleController(context: ControllerContext) {
  const { client, clock, options } = context
  const periodMs = options.nodeMonitorPeriodMs ?? 5_000
  const grace = { gracePeriodMs: options.nodeMonitorGracePeriodMs ?? 50_000, startupGracePeriodMs: options.nodeStartupGracePeriodMs ?? 60_000 }
  const informer = context.informers.of(nodes)
  const leaseInformer = context.informers.of(leases)
  const podInformer = context.informers.of(pods)
  podInformer.addIndexers(podNodeIndexers)
  const events = context.events('node-controller')
  const healths = new Map<string, NodeHealth>()
  /** Nodes whose pods have been marked since they were last ready: once is enough, a kubelet that lives knows better afterwards. */
  const marked = new Set<string>()
  const reconciler = createReconciler(context, { name: nodeLifecycle.name, queueName: 'node_lifecycle_controller', workers: 8, reconcile })
  reconciler.watch(informer, {
    ...enqueueSelf<Node>(reconciler.queue),
    onDelete: (node) => {
      healths.delete(node.metadata.name ?? '')
      marked.delete(node.metadata.name ?? '')
      events.event(node, 'Normal', 'RemovingNode', `Node ${node.metadata.name} event: Removing Node ${node.metadata.name} from Controller`)
    },
  })
  reconciler.needs(leaseInformer)
  reconciler.needs(podInformer)
  reconciler.also((signal) => everyPeriod(context, nodeLifecycle.name, periodMs, () => monitor(signal), signal))
  return reconciler

  /** Taints follow conditions as they change. */
  async function reconcile(name: string, signal: AbortSignal): Promise<undefined> {
    const node = informer.store.get(name)
    if (!node) return
    const taints = wantedTaints(node, informer.store.list().some(isNodeReady), clock.now())
    if (!taints) return
    const { resourceVersion } = node.metadata
    await client.of(nodes).patch({ name }, 'merge', { metadata: { resourceVersion }, spec: { taints } }, { signal })
  }

  /** Looks for silence, which no event tells. */
  async function monitor(signal: AbortSignal): Promise<void> {
    const nowMs = clock.now()
    const someReady = informer.store.list().some(isNodeReady)
    for (const node of informer.store.list()) {
      const { name = '' } = node.metadata
      const before = healths.get(name)
      if (!before) events.event(node, 'Normal', 'RegisteredNode', `Node ${name} event: Registered Node ${name} in Controller`)
      const health = observeNode(before, node, leaseInformer.lister.get({ namespace: leaseNamespace, name }), nowMs)
      healths.set(name, health)
      const conditions = silentConditions(node, health, grace, nowMs)
      if (conditions)
        await client
          .of(nodes)
          .updateStatus({ ...node, status: { ...node.status, conditions } } as Frozen<Node>, { signal })
          .catch(unlessStale)
      if (!conditions && isNodeReady(node)) marked.delete(name)
      else if (!marked.has(name)) {
        await markPodsNotReady(node, before !== undefined, signal)
        marked.add(name)
      }
      // Whether nodes are evicted from depends on the others, too.
      if (wantedTaints(node, someReady, nowMs)) reconciler.queue.add(name)
    }
  }

  async function markPodsNotReady(node: Frozen<Node>, known: boolean, signal: AbortSignal): Promise<void> {
    const { name = '' } = node.metadata
    const ready = podInformer.store.byIndex(nodeNameIndex, name).filter((pod) => isPodReady(pod) && !isPodTerminal(pod))
    if (ready.length > 0 && known) events.event(node, 'Normal', 'NodeNotReady', `Node ${name} status is now: NodeNotReady`)
    for (const pod of ready) await markNotReady(pod, signal)
  }

  async function markNotReady(pod: Frozen<Pod>, signal: AbortSignal): Promise<void> {
    const { namespace, name = '', uid } = pod.metadata
    events.event(pod, 'Warning', 'NodeNotReady', 'Node is not ready')
    const conditions = [{ type: 'Ready', status: 'False', lastTransitionTime: formatTime(clock.now()) }]
    await client
      .of(pods)
      .patch({ namespace, name }, 'strategic', { metadata: { uid }, status: { conditions } }, { subresource: 'status', signal })
      .catch(unlessStale)
  }
}

function unlessStale(error: unknown): void {
  if (!isStatus(error, 'NotFound') && !isStatus(error, 'Conflict')) throw error
}
