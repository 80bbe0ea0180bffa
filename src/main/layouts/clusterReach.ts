/**
 * How the API server of a local cluster reaches addresses of its pods and services (L5): through the cluster's dialer, never through the host's routes. The
 * addresses of simulated pods are refused with the reason, since nothing has them and something else on the host's networks might.
 */
import type { Node } from '#api/gen/types/core.v1'
import type { ServiceCIDR } from '#api/gen/types/networking.v1'
import { cidrContains, parseCidr, parseIp } from '#api/machinery/ip'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { addressBlocks } from '#apiserver/backends/addressBlocks'
import { type Dialer, type Reach, UnreachableAddress } from '#apiserver/backends/reach'
import type { ObjectReader } from '#apiserver/core/objectReader'
import { simulatedNodeBlock } from '#kubelet/runtime/simulated/machine'
import { isSimulated, podCidrsOf } from '#network/podNetwork'
import type { ClusterRanges } from '../vnode/ranges.ts'

export interface ClusterReachOptions {
  readonly ranges: ClusterRanges
  readonly reader: Pick<ObjectReader, 'list'>
  /** Absent: the cluster has no real nodes. */
  readonly dial?: Dialer | undefined
  /** Whether a node is one of this cluster's real nodes on this host. */
  isOwn(nodeName: string): boolean
}

const nodes = { group: '', resource: 'nodes' }
const serviceCidrs = { group: 'networking.k8s.io', resource: 'servicecidrs' }

export function createClusterReach({ ranges, reader, dial, isOwn }: ClusterReachOptions): Reach {
  const isPod = blockOf(ranges.clusterCidr)
  const isService = blockOf(ranges.serviceCidr)
  const isAddedService = (address: string) => {
    const listed = reader.list<KubeObject>(serviceCidrs) as unknown as readonly Frozen<ServiceCIDR>[]
    return listed.some(({ spec }) => spec?.cidrs?.some((cidr) => blockOf(cidr)(address)))
  }
  return {
    dialerFor: (address) => {
      if (isSimulatedNode(address)) refuseNode(address, reader)
      if (isPod(address)) return podDialer(address, reader, dial, isOwn)
      if (!isService(address) && !isAddedService(address)) return undefined
      if (!dial) throw new UnreachableAddress(`${address} is a cluster IP, which only real nodes serve, and this cluster has none`)
      return dial
    },
  }
}

const isSimulatedNode = addressBlocks([[simulatedNodeBlock.network, simulatedNodeBlock.prefix]])

/** @throws UnreachableAddress for the address of a simulated node of this cluster; other addresses of the block may be those of another network */
function refuseNode(address: string, reader: Pick<ObjectReader, 'list'>): void {
  const listed = reader.list<KubeObject>(nodes) as unknown as readonly Frozen<Node>[]
  const node = listed.find((one) => isSimulated(one) && one.status?.addresses?.some((own) => own.address === address))
  if (node) throw new UnreachableAddress(`${address} is the address of node ${node.metadata.name}, which is simulated: nothing listens there`)
}

function podDialer(address: string, reader: Pick<ObjectReader, 'list'>, dial: Dialer | undefined, isOwn: (name: string) => boolean): Dialer | undefined {
  const ip = parseIp(address)
  const listed = reader.list<KubeObject>(nodes) as unknown as readonly Frozen<Node>[]
  const node = listed.find((one) => podCidrsOf(one).some((cidr) => ip && blockContains(cidr, ip)))
  if (!node) throw new UnreachableAddress(`${address} is in the range of this cluster's pods, and no node has it`)
  const name = node.metadata.name ?? ''
  if (isSimulated(node)) throw new UnreachableAddress(`${address} belongs to node ${name}, which is simulated: nothing listens on the addresses of its pods`)
  // A node that joined from elsewhere is reached by routes that its administrator made.
  return isOwn(name) ? dial : undefined
}

function blockContains(cidr: string, ip: NonNullable<ReturnType<typeof parseIp>>): boolean {
  const block = parseCidr(cidr)
  return block !== undefined && cidrContains(block, ip)
}

/** One block, or several with commas between. Also true for an IPv4 address of a block that is written as IPv6. */
function blockOf(cidrs: string): (address: string) => boolean {
  return addressBlocks(
    cidrs.split(',').map((cidr) => {
      const [network = '', prefix = '0'] = cidr.split('/')
      return [network, Number(prefix)] as const
    }),
  )
}
