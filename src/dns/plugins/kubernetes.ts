/** Answers for the cluster's own zone and for reverse names of its addresses (L3). Upstream: CoreDNS plugin/kubernetes. */
import { type ClusterView, lookUp, recordTtl, reverseLookUp } from '../clusterRecords.ts'
import { type DnsAnswer, type DnsQuestion, type DnsRecord, writeQuery } from '../message.ts'
import { type DnsPlugin, type DnsProtocol, type DnsResolver, isInZone, recordsOf, reverseZones } from './plugin.ts'

/** An ExternalName may name another one of the cluster, and so on. */
const maxDepth = 8

export interface KubernetesOptions {
  /** Names of the cluster that do not exist are passed on when they are in one of these zones. Default: reverse names. */
  readonly fallthrough?: readonly string[]
  readonly ttl?: number
  /** Answers any question, with all plugins: for the targets of ExternalNames. */
  readonly ask?: DnsResolver
}

export function createKubernetesPlugin(view: ClusterView, zone: string, options: KubernetesOptions = {}): DnsPlugin {
  const { fallthrough = reverseZones, ttl = recordTtl, ask } = options
  const authorityOf = (name: string): DnsRecord[] => [{ name, ttl, type: 'SOA', mname: `ns.dns.${zone}`, rname: `hostmaster.${zone}`, serial: 1, minimum: ttl }]
  const passesOn = (name: string) => fallthrough.some((one) => isInZone(name, one))
  const withTtl = (records: readonly DnsRecord[]) => (ttl === recordTtl ? records : records.map((record) => ({ ...record, ttl })))
  return {
    name: 'kubernetes',
    resolve: (question, _query, protocol) => {
      const { name, type } = question
      const reverse = reverseZones.find((one) => isInZone(name, one))
      if (reverse !== undefined) {
        const answers = reverseLookUp(view, zone, name)
        if (answers.length > 0) return { code: 'NOERROR', authoritative: true, answers: type === 'PTR' ? withTtl(answers) : [] }
        return passesOn(name) ? undefined : { code: 'NXDOMAIN', authoritative: true, answers: [], authority: authorityOf(reverse) }
      }
      if (!isInZone(name, zone)) return undefined
      const found = lookUp(view, zone, name, type)
      if (!found.exists) return passesOn(name) ? undefined : { code: 'NXDOMAIN', authoritative: true, answers: [], authority: authorityOf(zone) }
      const answers = withTtl(found.records.map((record) => ({ ...record, name: question.nameAsAsked })))
      const [first] = answers
      if (first?.type === 'CNAME' && type !== 'CNAME' && ask) return withTarget(first, question, protocol, ask)
      return {
        code: 'NOERROR',
        authoritative: true,
        answers,
        authority: answers.length === 0 ? authorityOf(zone) : [],
        additional: withTtl(found.additional ?? []),
      }
    },
  }
}

/** The records of an alias' target follow the alias, as resolvers of programs ask no second time. Without them the alias is the whole answer. */
async function withTarget(alias: DnsRecord & { readonly target: string }, question: DnsQuestion, protocol: DnsProtocol, ask: DnsResolver): Promise<DnsAnswer> {
  const alone: DnsAnswer = { code: 'NOERROR', authoritative: true, answers: [alias] }
  const { depth = 0 } = question
  if (depth >= maxDepth) return alone
  const target: DnsQuestion = {
    ...question,
    name: alias.target.toLowerCase(),
    nameAsAsked: alias.target,
    recursionDesired: true,
    hasEdns: true,
    depth: depth + 1,
  }
  const query = writeQuery(target)
  let reply = recordsOf(await ask(target, query, protocol))
  // The datagram was too small for the answer.
  if (!reply && protocol === 'udp') reply = recordsOf(await ask(target, query, 'tcp'))
  return reply?.code === 'NOERROR' ? { ...alone, answers: [alias, ...reply.answers] } : alone
}
