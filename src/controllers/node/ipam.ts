/**
 * Gives each node a block of pod addresses out of the cluster's (L3). Upstream: pkg/controller/nodeipam/ipam/range_allocator.go (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { nodes } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler, enqueueSelf } from '../framework/reconciler.ts'

export const nodeIpam: ControllerDescriptor = {
  name: 'node-ipam-controller',
  aliases: ['nodeipam'],
  serviceAccount: 'node-controller',
  create: createNodeIpamController,
}

function createNodeIpamController(context: ControllerContext) {
  const { clusterCidr = '10.244.0.0/16', nodeCidrMaskSize = 24 } = context.options
  const blocks = createBlocks(clusterCidr, nodeCidrMaskSize)
  const informer = context.informers.of(nodes)
  const events = context.events('cidrAllocator')
  const reconciler = createReconciler(context, {
    name: nodeIpam.name,
    queueName: 'node_ipam_controller',
    // One at a time: a block must not be given twice.
    workers: 1,
    async reconcile(name, signal) {
      const node = informer.store.get(name)
      if (!node || node.spec.podCIDR) return undefined
      const podCIDR = blocks.take()
      if (podCIDR === undefined) {
        events.event(node, 'Normal', 'CIDRNotAvailable', `Node ${name} status is now: CIDRNotAvailable`)
        throw new Error('there are no remaining CIDRs left to allocate in the accepted range')
      }
      try {
        await context.client.of(nodes).patch({ name }, 'strategic', { spec: { podCIDR, podCIDRs: [podCIDR] } }, { signal })
      } catch (error) {
        blocks.release(podCIDR)
        throw error
      }
      return undefined
    },
  })
  const occupy = (node: Frozen<Node>) => {
    for (const cidr of node.spec.podCIDRs ?? []) blocks.occupy(cidr)
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
    onDelete: (node) => {
      for (const cidr of node.spec.podCIDRs ?? []) blocks.release(cidr)
    },
  })
  return reconciler
}

export interface Blocks {
  /** The next free block, after the one given last so that blocks rest before they return; undefined when all are taken. */
  take(): string | undefined
  occupy(cidr: string): void
  release(cidr: string): void
}

/** The blocks of `maskSize` in an IPv4 range. */
export function createBlocks(range: string, maskSize: number): Blocks {
  const [base = '', bits = ''] = range.split('/')
  const start = base.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
  const count = 2 ** (maskSize - Number(bits))
  const size = 2 ** (32 - maskSize)
  const taken = new Set<string>()
  let next = 0
  const nameOf = (index: number) => {
    const address = start + index * size
    return `${[24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.')}/${maskSize}`
  }
  return {
    take: () => {
      for (let tried = 0; tried < count; tried++) {
        const cidr = nameOf(next)
        next = (next + 1) % count
        if (taken.has(cidr)) continue
        taken.add(cidr)
        return cidr
      }
      return undefined
    },
    occupy: (cidr) => void taken.add(cidr),
    release: (cidr) => void taken.delete(cidr),
  }
}
