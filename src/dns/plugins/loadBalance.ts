/** Turns the order of addresses, so that clients that take the first one spread (L3). Upstream: CoreDNS plugin/loadbalance. */
import { type DnsRecord, recordTypes } from '../message.ts'
import type { DnsPlugin } from './plugin.ts'

const addressTypes: readonly number[] = [recordTypes.A, recordTypes.AAAA]

export function createLoadBalancePlugin(): DnsPlugin {
  let turn = 0
  return {
    name: 'loadbalance',
    resolve: async (question, query, protocol, next) => {
      const reply = await next(question, query, protocol)
      // What another server answered was turned there.
      return 'raw' in reply ? reply : { ...reply, answers: turned(reply.answers, turn++) }
    },
  }
}

/** Addresses stay behind the aliases that lead to them. */
function turned(records: readonly DnsRecord[], by: number): readonly DnsRecord[] {
  const isAddress = (record: DnsRecord) => (record.type === 'OTHER' ? addressTypes.includes(record.number) : record.type === 'A' || record.type === 'AAAA')
  const addresses = records.filter(isAddress)
  if (addresses.length < 2) return records
  const first = by % addresses.length
  return [...records.filter((record) => !isAddress(record)), ...addresses.slice(first), ...addresses.slice(0, first)]
}
