/** Compares the routes and neighbours of a node's kernel with those that its agent wants (L3), pure. Reads what `ip -json` prints. */
import type { NodeNeighbour, NodeRoute } from '#api/debug/nodeNetwork'
import { cidrContains, type IpBlock, networkAddress, parseCidr, parseIp } from '#api/machinery/ip'
import type { Route } from './podNetwork.ts'

export interface KernelRoute {
  readonly dst: string
  readonly gateway?: string | undefined
  readonly dev?: string | undefined
  /** blackhole, unreachable and so on; absent: an ordinary one. */
  readonly type?: string | undefined
}

export interface KernelNeighbour {
  readonly dst: string
  readonly dev?: string | undefined
  readonly lladdr?: string | undefined
  readonly state?: readonly string[] | undefined
}

export interface RouteRanges {
  /** The ranges that all pods get addresses from. */
  readonly clusterCidrs: readonly string[]
  /** The ranges that the node's own pods get addresses from. */
  readonly podCidrs: readonly string[]
}

/** Those wanted, in their order, then what else the kernel has for addresses of pods. */
export function nodeRoutes(kernel: readonly KernelRoute[], wanted: readonly Route[], { clusterCidrs, podCidrs }: RouteRanges): NodeRoute[] {
  const [all, own] = [blocksOf(clusterCidrs), blocksOf(podCidrs)]
  // The first of several is shown.
  const ordinary = kernel.filter(({ type }) => type === undefined).reverse()
  const plain = new Map(ordinary.map((route) => [keyOf(route.dst, route.gateway), route]))
  const asWanted = new Set(wanted.map(({ cidr, via }) => keyOf(cidr, via)))
  const found = wanted.map((route): NodeRoute => {
    const there = plain.get(keyOf(route.cidr, route.via))
    return there ? { ...route, device: there.dev, state: 'present' } : { ...route, state: 'missing' }
  })
  const isWanted = ({ dst, gateway, type }: KernelRoute) => type === undefined && asWanted.has(keyOf(dst, gateway))
  const others = kernel.filter((route) => !isWanted(route) && isWithin(all, route.dst))
  return [
    ...found,
    ...others.map(({ dst, gateway, dev, type }): NodeRoute => {
      const isLocal = gateway === undefined && type === undefined && isWithin(own, dst)
      return { cidr: dst, via: gateway ?? type, device: dev, state: isLocal ? 'local' : 'foreign' }
    }),
  ]
}

const keyOf = (cidr: string, via: string | undefined) => `${cidr} ${via ?? ''}`

/** @param gateways the nodes that routes lead through */
export function nodeNeighbours(kernel: readonly KernelNeighbour[], gateways: readonly string[], clusterCidrs: readonly string[]): NodeNeighbour[] {
  const [blocks, through] = [blocksOf(clusterCidrs), new Set(gateways)]
  return kernel
    .filter(({ dst }) => through.has(dst) || isWithin(blocks, dst))
    .map(({ dst, dev, lladdr, state = [] }) => ({ address: dst, device: dev, linkAddress: lladdr, state: state.join(',') || 'NONE' }))
}

function blocksOf(cidrs: readonly string[]): readonly IpBlock[] {
  return cidrs.flatMap((cidr) => parseCidr(cidr) ?? [])
}

/** `default` and addresses of links are not. */
function isWithin(blocks: readonly IpBlock[], destination: string): boolean {
  const block = parseCidr(destination)
  const address = block ? networkAddress(block) : parseIp(destination)
  return address !== undefined && blocks.some((block) => cidrContains(block, address))
}
