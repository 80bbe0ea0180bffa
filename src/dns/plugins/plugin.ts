/** What a DNS plugin is (L3): it answers a question, passes it on to the next one in the list, or changes what the next ones answer. */
import type { DnsAnswer, DnsQuestion } from '../message.ts'
import { readAnswer } from '../readAnswer.ts'

/** The zones of names that stand for addresses. */
export const reverseZones: readonly string[] = ['in-addr.arpa', 'ip6.arpa']

/** How the client asked; an answer over TCP is never truncated. */
export type DnsProtocol = 'udp' | 'tcp'

/** A raw answer is sent unchanged. */
export type DnsReply = DnsAnswer | { readonly raw: Buffer }

/** Answers a question by all plugins of a server, or by those behind one. `query` is the message as it came, for plugins that forward it. */
export type DnsResolver = (question: DnsQuestion, query: Buffer, protocol: DnsProtocol) => Promise<DnsReply>

export interface DnsPlugin {
  readonly name: string
  /** Undefined: the next plugin answers. @param next asks the plugins behind this one */
  resolve(question: DnsQuestion, query: Buffer, protocol: DnsProtocol, next: DnsResolver): Promise<DnsReply | undefined> | DnsReply | undefined
}

export const refused: DnsAnswer = { code: 'REFUSED', authoritative: false, answers: [] }
export const serverFailure: DnsAnswer = { code: 'SERVFAIL', authoritative: false, answers: [] }

/** Asks plugins in order; what none answers is refused. */
export function inOrder(plugins: readonly DnsPlugin[]): DnsResolver {
  const from = async (index: number, ...[question, query, protocol]: Parameters<DnsResolver>): Promise<DnsReply> => {
    for (let at = index; at < plugins.length; at++) {
      const reply = await plugins[at]?.resolve(question, query, protocol, (...asked) => from(at + 1, ...asked))
      if (reply) return reply
    }
    return refused
  }
  return (...asked) => from(0, ...asked)
}

/** A reply in records; undefined when it is a raw one that cannot be read. */
export function recordsOf(reply: DnsReply): DnsAnswer | undefined {
  return 'raw' in reply ? readAnswer(reply.raw) : reply
}

/** Whether a name is a zone or below it. All names are in lower case without the final dot; '' is the root. */
export function isInZone(name: string, zone: string): boolean {
  return zone === '' || name === zone || name.endsWith(`.${zone}`)
}
