/** What a DNS plugin is (L3): it answers a question or passes it on to the next one in the list. */
import type { DnsAnswer, DnsQuestion } from '../message.ts'

export interface DnsPlugin {
  readonly name: string
  /** Undefined: not mine. `query` is the message as it came, for plugins that pass it on; raw answers are sent as they are. */
  resolve(question: DnsQuestion, query: Buffer): Promise<DnsAnswer | { readonly raw: Buffer } | undefined> | DnsAnswer | undefined
}
