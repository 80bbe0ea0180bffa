/** The access log (L3), one line per request at verbosity 3 with upstream's keys. Upstream: apiserver/pkg/server/httplog. */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { requestUri, type ServerRequest } from '../core/request.ts'
import { codeOf, finished, type Stage } from '../core/stage.ts'
import { normalizedVerb } from './latency.ts'

const accessVerbosity = 3

export function httpLogStage(log: Logger, clock: Clock): Stage {
  const access = log.v(accessVerbosity)
  const write = (request: ServerRequest, resp: number) =>
    access.info('HTTP', {
      verb: normalizedVerb(request),
      URI: requestUri(request),
      latency: `${clock.now() - request.receivedMs}ms`,
      userAgent: request.headers['user-agent'],
      'audit-ID': request.auditId,
      srcIP: request.remoteAddress,
      ...(resp === 101 ? { hijacked: true } : { resp }),
    })
  return {
    name: 'httpLog',
    handle: (request, next) => (access.enabled === false ? next(request) : finished(next, request, (answer, error) => write(request, codeOf(answer, error)))),
  }
}
