/** What a DNS plugin is (L3): it answers a question or passes it on to the next one in the list. */
import type { DnsAnswer, DnsQuestion } from '../message.ts'

/** How the client asked; an answer over TCP is never truncated. */
export type DnsProtocol = 'udp' | 'tcp'

export interface DnsPlugin {
  readonly name: string
  /** Undefined: the next plugin answers. `query` is the message as it came, for plugins that forward it; raw answers are sent unchanged. */
  resolve(question: DnsQuestion, query: Buffer, protocol: DnsProtocol): Promise<DnsAnswer | { readonly raw: Buffer } | undefined> | DnsAnswer | undefined
}
