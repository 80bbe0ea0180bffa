/** Answers for the cluster's own zone and for reverse names of its addresses (L3). Upstream: CoreDNS plugin/kubernetes. */
import { type ClusterView, lookUp, recordTtl, reverseLookUp } from '../clusterRecords.ts'
import type { DnsRecord } from '../message.ts'
import type { DnsPlugin } from './plugin.ts'

export function createKubernetesPlugin(view: ClusterView, zone: string): DnsPlugin {
  const authority: DnsRecord[] = [
    { name: zone, ttl: recordTtl, type: 'SOA', mname: `ns.dns.${zone}`, rname: `hostmaster.${zone}`, serial: 1, minimum: recordTtl },
  ]
  return {
    name: 'kubernetes',
    resolve: (question) => {
      const { name, type } = question
      if (name.endsWith('.in-addr.arpa') || name.endsWith('.ip6.arpa')) {
        const answers = reverseLookUp(view, zone, name)
        // The next plugin forwards addresses outside the cluster.
        return answers.length > 0 ? { code: 'NOERROR', authoritative: true, answers: type === 'PTR' ? answers : [] } : undefined
      }
      if (name !== zone && !name.endsWith(`.${zone}`)) return undefined
      const found = lookUp(view, zone, name, type)
      if (!found.exists) return { code: 'NXDOMAIN', authoritative: true, answers: [], authority }
      const answers = found.records.map((record) => ({ ...record, name: question.nameAsAsked }))
      return { code: 'NOERROR', authoritative: true, answers, authority: answers.length === 0 ? authority : [], additional: found.additional ?? [] }
    },
  }
}
