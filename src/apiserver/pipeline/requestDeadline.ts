/**
 * Sets the deadline of a short request (L3): the server's limit, or a shorter one from `?timeout=`. A timeout that does not parse is refused, and
 * audited although the request is not authenticated yet. Upstream: apiserver/pkg/endpoints/filters/request_deadline.go.
 */
import { parseDuration } from '#api/machinery/duration'
import { badRequest } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { AuditSink } from '../audit/sink.ts'
import type { ServerRequest } from '../core/request.ts'
import { isLongRunning, type Stage } from '../core/stage.ts'
import { auditRefusal } from './audit.ts'

export function requestDeadlineStage(sink: AuditSink | undefined, clock: Clock, mostMs: number): Stage {
  return {
    name: 'requestDeadline',
    handle(request, next) {
      if (isLongRunning(request)) return next(request)
      const timeoutMs = wantedTimeout(request, mostMs)
      if (timeoutMs === undefined) {
        const error = badRequest(`invalid timeout specified in the request URL - time: invalid duration ${JSON.stringify(request.query.get('timeout'))}`)
        auditRefusal(sink, request, clock.now(), { message: error.message, code: error.code })
        throw error
      }
      request.timeoutMs = timeoutMs
      return next(request)
    },
  }
}

/** Zero and negative values mean the limit, as upstream; undefined: the value is no duration. */
function wantedTimeout(request: ServerRequest, mostMs: number): number | undefined {
  const text = request.query.get('timeout')
  if (!text) return mostMs
  const ms = parseDuration(text)
  return ms === undefined || (ms > 0 && ms < mostMs) ? ms : mostMs
}
