/**
 * The flags of the server itself (L5): limits, times, headers. Upstream: apiserver/pkg/server/options/server_run_options.go.
 */
import type { ApiServerConfig } from '#apiserver/apiServer'
import { decimal, duration, flag, list, text, UsageError, whole } from './flags.ts'
import { optionGroup } from './optionGroup.ts'

export interface GenericOptions extends ApiServerConfig {
  /** Perhaps with a port. */
  readonly externalHost: string | undefined
  /** Whether profiles of this process are served below /debug/pprof. */
  readonly profiling: boolean
}

export const generic = optionGroup({
  name: 'Generic',
  flags: {
    'cors-allowed-origins': list('Regular expressions of origins that browsers may call from; none: CORS is off'),
    'external-hostname': text('The host at which clients outside find this server, as documents tell it; empty: the advertised address'),
    'goaway-chance': decimal('Probability, from 0 to 0.02, that the answer to an HTTP/2 request asks the client to use another connection', 0),
    'max-mutating-requests-inflight': whole('How many writes are worked on at once; with priority and fairness, a part of the seats there are', 200),
    'max-requests-inflight': whole('How many reads are worked on at once; with priority and fairness, a part of the seats there are', 400),
    'min-request-timeout': whole('Seconds that a watch lasts at least; each gets a random time above it', 1800),
    profiling: flag('Serve profiles of this process below /debug/pprof', true),
    'request-timeout': duration('How long a request may take, unless it is one that lasts', 60_000),
    'shutdown-delay-duration': duration('How long a shutdown waits before it begins: everything is served, but /readyz says no', 0),
    'shutdown-send-retry-after': flag('While shutting down, new requests are answered with 429 and Retry-After instead of a closed port'),
    'shutdown-watch-termination-grace-period': duration('How long a shutdown waits for watches to end', 0),
    'strict-transport-security-directives': list('Directives of the Strict-Transport-Security header; none: it is not sent'),
  },
  settings(values): GenericOptions {
    const faults = [...checks.filter(({ wrong }) => wrong(values)).map(({ message }) => message), ...values['cors-allowed-origins'].flatMap(originFault)]
    if (faults.length > 0) throw new UsageError(faults)
    return {
      corsAllowedOrigins: values['cors-allowed-origins'],
      goawayChance: values['goaway-chance'],
      maxInFlight: { readOnly: values['max-requests-inflight'], mutating: values['max-mutating-requests-inflight'] },
      minWatchTimeoutMs: values['min-request-timeout'] * 1000,
      profiling: values.profiling,
      requestTimeoutMs: values['request-timeout'],
      shutdownDelayMs: values['shutdown-delay-duration'],
      externalHost: values['external-hostname'] || undefined,
      shutdownSendRetryAfter: values['shutdown-send-retry-after'],
      shutdownWatchTerminationGraceMs: values['shutdown-watch-termination-grace-period'],
      hstsDirectives: values['strict-transport-security-directives'],
    }
  },
})

type Values = Parameters<typeof generic.settings>[0]

const checks: readonly { wrong(values: Values): boolean; message: string }[] = [
  { wrong: (v) => v['goaway-chance'] < 0 || v['goaway-chance'] > 0.02, message: '--goaway-chance can not be less than 0 or greater than 0.02' },
  { wrong: (v) => v['max-requests-inflight'] < 0, message: '--max-requests-inflight can not be negative value' },
  { wrong: (v) => v['max-mutating-requests-inflight'] < 0, message: '--max-mutating-requests-inflight can not be negative value' },
  { wrong: (v) => v['request-timeout'] < 0, message: '--request-timeout can not be negative value' },
  { wrong: (v) => v['shutdown-delay-duration'] < 0, message: '--shutdown-delay-duration can not be negative value' },
  { wrong: (v) => v['min-request-timeout'] < 0, message: '--min-request-timeout can not be negative value' },
  {
    wrong: (v) => v['shutdown-watch-termination-grace-period'] < 0,
    message: '--shutdown-watch-termination-grace-period, if provided, can not be a negative value',
  },
  {
    wrong: (v) => v['strict-transport-security-directives'].some((one) => !/^(max-age=.*|includeSubDomains|preload)$/.test(one)),
    message:
      '--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information',
  },
]

const originsHelp = "each must fit a whole host, from '^' or '//' to '$' or ':', as '//example\\.com(:|$)' does"

/** An expression that fits a part of a host would let others in that have it in their names. */
function originFault(expression: string): readonly string[] {
  const refused = (why: string) => [`--cors-allowed-origins has an invalid regular expression: ${why}, help: ${originsHelp}`]
  try {
    new RegExp(expression)
  } catch (error) {
    return refused((error as Error).message)
  }
  const isPinned = ['^', '//'].some((start) => expression.includes(start)) && ['$', ':'].some((end) => expression.includes(end))
  return isPinned ? [] : refused('regular expression does not pin to start/end of host in the origin header')
}
