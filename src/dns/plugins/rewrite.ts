/**
 * Asks for another name than the client (L3), and answers under the client's. Upstream: CoreDNS plugin/rewrite, of its rules those about names.
 */
import { type DnsQuestion, type DnsRecord, writeQuery } from '../message.ts'
import { type DnsPlugin, recordsOf } from './plugin.ts'

/** Takes a name with its final dot, and returns another one with or without it; undefined: the pattern does not match. */
export type NamePattern = (name: string) => string | undefined

export type RewriteRule = {
  /** Whether the next rules see the new name. */
  readonly continues: boolean
  /** For the names of an answer that are not the one asked for. */
  readonly ofAnswer: readonly NamePattern[]
} & (
  | { readonly match: 'exact' | 'prefix' | 'suffix' | 'substring'; readonly from: string; readonly to: string }
  | { readonly match: 'regex'; readonly rewrite: NamePattern }
)

export function createRewritePlugin(rules: readonly RewriteRule[]): DnsPlugin {
  return {
    name: 'rewrite',
    resolve: async (question, _query, protocol, next) => {
      const { name, ofAnswer } = rewriteName(rules, question.name)
      if (name === question.name) return undefined
      const asked: DnsQuestion = { ...question, name, nameAsAsked: name }
      const reply = await next(asked, writeQuery(asked), protocol)
      const answer = recordsOf(reply)
      // A truncated answer has no records: the client asks again over TCP.
      if (!answer) return { code: 'NOERROR', authoritative: false, answers: [], isTruncated: true }
      const renamed = renaming(ofAnswer)
      const rename = (record: DnsRecord) => ({ ...record, name: record.name.toLowerCase() === name ? question.nameAsAsked : renamed(record.name) })
      return { ...answer, answers: answer.answers.map(rename) }
    },
  }
}

/** The name to ask for, and the rules for the answer of those that made it. */
export function rewriteName(rules: readonly RewriteRule[], asked: string): { readonly name: string; readonly ofAnswer: readonly NamePattern[] } {
  let name = asked
  const ofAnswer: NamePattern[] = []
  for (const rule of rules) {
    const changed = apply(rule, name)
    if (changed === undefined || !isName(changed)) continue
    name = changed
    ofAnswer.push(...rule.ofAnswer)
    if (!rule.continues) break
  }
  return { name, ofAnswer }
}

/** Undefined: the rule does not match. */
function apply(rule: RewriteRule, name: string): string | undefined {
  if (rule.match === 'regex') return withoutDot(rule.rewrite(`${name}.`)?.toLowerCase())
  const { from, to } = rule
  switch (rule.match) {
    case 'exact':
      return name === from ? to : undefined
    case 'prefix':
      return name.startsWith(from) ? to + name.slice(from.length) : undefined
    case 'suffix':
      return name.endsWith(from) ? name.slice(0, name.length - from.length) + to : undefined
    case 'substring':
      return name.includes(from) ? name.replaceAll(from, () => to) : undefined
  }
}

/** Names of an answer that patterns are tried on: an alias seldom has more hops. */
const mostNames = 8

/** Applies the first pattern that matches, once for each name. */
function renaming(patterns: readonly NamePattern[]): (name: string) => string {
  const known = new Map<string, string>()
  return (name) => {
    const before = known.get(name)
    if (before !== undefined || patterns.length === 0 || known.size === mostNames) return before ?? name
    const changed = withoutDot(patterns.map((pattern) => pattern(`${name}.`)).find((one) => one !== undefined))
    const after = changed !== undefined && isName(changed) ? changed : name
    known.set(name, after)
    return after
  }
}

const withoutDot = (name: string | undefined) => name?.replace(/\.$/, '')

function isName(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => label.length >= 1 && label.length <= 63)
}
