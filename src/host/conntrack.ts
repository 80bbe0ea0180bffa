/** Forgets connections (L1) through conntrack(8): a flow keeps its old backend until its entry is deleted or expires. */
import { type Exec, ExecError } from './exec.ts'

export interface ConntrackFilter {
  /** Absent: every protocol. */
  readonly protocol?: 'tcp' | 'udp' | 'sctp' | undefined
  /** For a filter without addresses, which tell it otherwise. */
  readonly isIpv6?: boolean | undefined
  readonly origDst?: string | undefined
  readonly origSrc?: string | undefined
  /** The address that answers: the destination after its translation. */
  readonly replySrc?: string | undefined
  /** The address that destination NAT chose; `any`: every flow with destination NAT. */
  readonly dstNat?: string | undefined
  readonly origPortDst?: number | undefined
  /** The backend's port, from which its answers come. */
  readonly replyPortSrc?: number | undefined
  /** TCP: only connections that nothing has answered yet. */
  readonly state?: 'SYN_SENT' | undefined
}

export interface Conntrack {
  /** Deletes matching entries and says how many there were. */
  delete(filter: ConntrackFilter): Promise<number>
}

/** conntrack's arguments for a filter; IPv6 addresses select the family. */
export function conntrackArgs(filter: ConntrackFilter): string[] {
  const args = ['-D', ...(filter.protocol ? ['-p', filter.protocol] : [])]
  if (filter.isIpv6 || [filter.origDst, filter.origSrc, filter.replySrc, filter.dstNat].some((address) => address?.includes(':'))) args.push('-f', 'ipv6')
  if (filter.state) args.push('--state', filter.state)
  if (filter.origDst) args.push('--orig-dst', filter.origDst)
  if (filter.origSrc) args.push('--orig-src', filter.origSrc)
  if (filter.replySrc) args.push('--reply-src', filter.replySrc)
  if (filter.origPortDst !== undefined) args.push('--orig-port-dst', String(filter.origPortDst))
  if (filter.replyPortSrc !== undefined) args.push('--reply-port-src', String(filter.replyPortSrc))
  // Last, because the option takes a following word as its address.
  if (filter.dstNat) args.push('--dst-nat', ...(filter.dstNat === 'any' ? [] : [filter.dstNat]))
  return args
}

export function createConntrack(exec: Exec): Conntrack {
  return {
    delete: async (filter) => {
      const args = conntrackArgs(filter)
      const result = await exec.run('conntrack', args)
      const count = /(\d+) flow entries have been deleted/.exec(result.stderr)?.[1]
      // Exit code 1 with "0 flow entries have been deleted" is its way of saying that nothing matched.
      if (result.code !== 0 && count === undefined) throw new ExecError('conntrack', args, result)
      return Number(count ?? 0)
    },
  }
}
