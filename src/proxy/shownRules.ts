/**
 * Shows the rules of one Service as the kernel has them (L3), in bounds: how many requests at once, how long programs run and how much they write, and how
 * large the answer gets, since the API server takes a view of at most 1 MiB within five seconds.
 */
import type { NodeServiceRules, ServiceRuleText } from '#api/debug/nodeNetwork'
import type { Clock } from '#base/clock'
import type { Exec } from '#host/exec'
import type { ProxyModel } from './model.ts'
import type { ProxyMode } from './modes/mode.ts'

export interface RunningProxy {
  readonly mode: ProxyMode
  /** The one that the mode got last. */
  readonly model: ProxyModel
}

interface ShownRulesDeps {
  readonly exec: Exec
  readonly clock: Pick<Clock, 'monotonicMs'>
}

const maxAtOnce = 2
const wholeMs = 4000
const maxOutputBytes = 32 * 2 ** 20
const mostLines = 64
const mostLineLength = 1024
/** The bound for all lines together. */
const mostText = 512 * 1024

/** @returns shows the rules of a Service, named namespace/name; rejects when a program fails */
export function createShownRules({ exec, clock }: ShownRulesDeps): (running: RunningProxy, service: string) => Promise<NodeServiceRules> {
  let asked = 0
  return async ({ mode, model }, service) => {
    const { name, rulesOf } = mode
    if (!rulesOf) return { mode: name, note: `the mode ${name} does not show its rules` }
    const ofService = model.map((one) => ({ ...one, rules: one.rules.filter((rule) => rule.service === service) })).filter(({ rules }) => rules.length > 0)
    if (ofService.length === 0) return { mode: name, rules: [], note: 'the proxy has no rules for the Service: it has no cluster IP' }
    if (asked >= maxAtOnce) return { mode: name, note: `the proxy shows the rules of ${maxAtOnce} Services already: try again later` }
    asked++
    try {
      const bounded = withDeadline(exec, clock)
      const rules: ServiceRuleText[] = []
      for (const one of ofService) rules.push(...(await rulesOf(bounded, one)))
      return { mode: name, rules: shortened(rules) }
    } finally {
      asked--
    }
  }
}

/** Its programs have the time together. */
function withDeadline(exec: Exec, clock: ShownRulesDeps['clock']): Exec {
  const deadlineMs = clock.monotonicMs() + wholeMs
  return {
    spawn: exec.spawn,
    run: (command, args, options) => exec.run(command, args, { ...options, maxOutputBytes, timeoutMs: Math.max(1, deadlineMs - clock.monotonicMs()) }),
  }
}

function shortened(rules: readonly ServiceRuleText[]): ServiceRuleText[] {
  let room = mostText
  return rules.map((rule) => {
    if (rule.lines === undefined) return rule
    const kept = rule.lines.length > mostLines ? [...rule.lines.slice(0, mostLines - 1), `and ${rule.lines.length - mostLines + 1} more`] : rule.lines
    const lines = kept.map((line) => line.slice(0, mostLineLength))
    room -= lines.reduce((sum, line) => sum + line.length, 0)
    return { ...rule, lines: room < 0 ? ['not shown: the rules are too long together'] : lines }
  })
}
