/**
 * Asks for another name than the client (L3), and answers under the client's. Upstream: CoreDNS plugin/rewrite, of its rules those about names.
 */
import { type DnsQuestion, writeQuery } from '../message.ts'
import { type DnsPlugin, recordsOf } from './plugin.ts'

export interface RewriteRule {
  readonly match: 'exact' | 'prefix' | 'suffix' | 'substring'
  readonly from: string
  readonly to: string
  /** Whether the next rules see the new name. */
  readonly continues: boolean
}

export function createRewritePlugin(rules: readonly RewriteRule[]): DnsPlugin {
  return {
    name: 'rewrite',
    resolve: async (question, _query, protocol, next) => {
      const name = rewrittenName(rules, question.name)
      if (name === question.name) return undefined
      const asked: DnsQuestion = { ...question, name, nameAsAsked: name }
      const reply = await next(asked, writeQuery(asked), protocol)
      const answer = recordsOf(reply)
      // A truncated answer has no records: the client asks again over TCP.
      if (!answer) return { code: 'NOERROR', authoritative: false, answers: [], isTruncated: true }
      return { ...answer, answers: answer.answers.map((record) => (record.name.toLowerCase() === name ? { ...record, name: question.nameAsAsked } : record)) }
    },
  }
}

export function rewrittenName(rules: readonly RewriteRule[], asked: string): string {
  let name = asked
  for (const rule of rules) {
    const changed = apply(rule, name)
    if (changed === undefined || !isName(changed)) continue
    name = changed
    if (!rule.continues) break
  }
  return name
}

/** Undefined: the rule does not match. */
function apply({ match, from, to }: RewriteRule, name: string): string | undefined {
  switch (match) {
    case 'exact':
      return name === from ? to : undefined
    case 'prefix':
      return name.startsWith(from) ? to + name.slice(from.length) : undefined
    case 'suffix':
      return name.endsWith(from) ? name.slice(0, name.length - from.length) + to : undefined
    case 'substring':
      return name.includes(from) ? name.replace(from, () => to) : undefined
  }
}

function isName(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => label.length >= 1 && label.length <= 63)
}
