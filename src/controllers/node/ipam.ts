/**
 * Gives each node a block of pod addresses out of each of the cluster's ranges, one or one of each family (L3).
 * Upstream: pkg/controller/nodeipam/ipam/range_allocator.go (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { type Metrics, noMetrics } from '#base/metrics'
import { nodes } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf } from '../framework/reconciler.ts'
import { type CidrSet, createCidrSet } from './cidrSet.ts'

export interface NodeIpamOptions {
  /** One range, or one of each family separated by a comma. Default 10.244.0.0/16. */
  readonly clusterCidr?: string | undefined
  /** Addresses that no node gets for its pods. */
  readonly serviceCidr?: string | undefined
  readonly nodeCidrMaskSize?: number | undefined
  readonly nodeCidrMaskSizeIpv4?: number | undefined
  readonly nodeCidrMaskSizeIpv6?: number | undefined
}

export const nodeIpam: ControllerDescriptor<NodeIpamOptions> = {
  name: 'node-ipam-controller',
  aliases: ['nodeipam'],
  serviceAccount: 'node-controller',
  create: createNodeIpamController,
}

/** One set per range, in the order given. @throws Error for ranges or sizes that make no sense */
export function cidrSetsFor({ clusterCidr = '10.244.0.0/16', ...options }: NodeIpamOptions, metrics: Metrics = noMetrics): CidrSet[] {
  const ranges = clusterCidr.split(',').map((range) => range.trim())
  if (ranges.length > 2) throw new Error('--cluster-cidr contains more than one CIDR of a family')
  const sets = ranges.map((range) => {
    const isIpv6 = range.includes(':')
    const own = isIpv6 ? options.nodeCidrMaskSizeIpv6 : options.nodeCidrMaskSizeIpv4
    const shared = ranges.length === 1 ? options.nodeCidrMaskSize : undefined
    return createCidrSet(range, own ?? shared ?? (isIpv6 ? 64 : 24), metrics)
  })
  if (sets.length === 2 && sets[0]?.family === sets[1]?.family) throw new Error('expected --cluster-cidr to be of both IP families')
  // Services lie elsewhere, but where they do not, nodes must keep off.
  for (const service of options.serviceCidr?.split(',') ?? []) for (const set of sets) set.occupy(service)
  return sets
}

function createNodeIpamController(context: ControllerContext, options: NodeIpamOptions) {
  const sets = cidrSetsFor(options, context.metrics)
  const informer = context.informers.of(nodes)
  const events = context.events('cidrAllocator')
  const reconciler = createReconciler(context, {
    name: nodeIpam.name,
    queueName: 'cidrallocator_node',
    // One at a time: a block must not be given twice.
    workers: 1,
    reconcile,
  })
  const occupy = (node: Frozen<Node>) => {
    for (const cidr of node.spec.podCIDRs ?? []) for (const set of sets) set.occupy(cidr)
  }
  const release = (cidrs: readonly string[]) => {
    for (const cidr of cidrs) for (const set of sets) set.release(cidr)
  }
  const self = enqueueSelf<Node>(reconciler.queue, (node) => !node.spec.podCIDR)
  reconciler.watch(informer, {
    onAdd: (node, initial) => {
      occupy(node)
      self.onAdd?.(node, initial)
    },
    onUpdate: (old, node) => {
      occupy(node)
      self.onUpdate?.(old, node)
    },
    onDelete: (node) => release(node.spec.podCIDRs ?? []),
  })
  return reconciler

  async function reconcile(name: string, signal: AbortSignal): Promise<undefined> {
    const node = informer.store.get(name)
    if (!node || node.spec.podCIDR || node.metadata.deletionTimestamp) return
    const podCIDRs: string[] = []
    for (const set of sets) {
      const cidr = set.take()
      if (cidr !== undefined) podCIDRs.push(cidr)
    }
    if (podCIDRs.length < sets.length) {
      release(podCIDRs)
      events.event(node, 'Normal', 'CIDRNotAvailable', `Node ${name} status is now: CIDRNotAvailable`)
      throw new Error('there are no remaining CIDRs left to allocate in the accepted range')
    }
    try {
      await context.client.of(nodes).patch({ name }, 'strategic', { spec: { podCIDR: podCIDRs[0], podCIDRs } }, { signal })
    } catch (error) {
      // Without an answer the write may have succeeded: keep the ranges and decide by the node's next state.
      if (isStatus(error, 'ServerTimeout') || isStatus(error, 'Timeout')) throw error
      release(podCIDRs)
      events.event(node, 'Normal', 'CIDRAssignmentFailed', `Node ${name} status is now: CIDRAssignmentFailed`)
      throw error
    }
  }
}
