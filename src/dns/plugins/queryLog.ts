/** Logs each question with the code of its answer (L3). Upstream: CoreDNS plugin/log. */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { type DnsPlugin, isInZone, recordsOf } from './plugin.ts'

export function createLogPlugin(zones: readonly string[], log: Logger, clock: Clock): DnsPlugin {
  return {
    name: 'log',
    resolve: async (question, query, protocol, next) => {
      const { name, type } = question
      if (!zones.some((zone) => isInZone(name, zone))) return undefined
      const startedMs = clock.monotonicMs()
      const reply = await next(question, query, protocol)
      const code = recordsOf(reply)?.code ?? 'unknown'
      log.info('Answered a DNS question', { type, name, protocol, code, ms: Math.round(clock.monotonicMs() - startedMs) })
      return reply
    },
  }
}
