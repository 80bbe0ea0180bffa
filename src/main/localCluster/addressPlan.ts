/** The addresses that follow from a cluster's ranges (L5), pure. */
import { formatIp, networkAddress, parseCidr } from '#api/machinery/ip'
import { type ClusterRanges, usualRanges } from '../vnode/ranges.ts'

export interface AddressPlan extends ClusterRanges {
  /** The cluster IP of the `kubernetes` Service: the first of the range, as upstream. */
  readonly apiClusterIp: string
  /** The tenth, as kubeadm has it. */
  readonly clusterDns: string
  readonly clusterDomain: string
}

/** @param ranges absent: those of a cluster that was made before clusters had ranges of their own */
export function addressPlanOf({ ranges = usualRanges }: { readonly ranges?: ClusterRanges | undefined }): AddressPlan {
  return { ...ranges, apiClusterIp: nth(ranges.serviceCidr, 1n), clusterDns: nth(ranges.serviceCidr, 10n), clusterDomain: 'cluster.local' }
}

/** An address of the first range. */
function nth(cidr: string, index: bigint): string {
  const block = parseCidr(cidr.split(',')[0] ?? '')
  if (!block) throw new Error(`${cidr} is not a range of addresses`)
  const { family, value } = networkAddress(block)
  return formatIp({ family, value: value + index })
}
