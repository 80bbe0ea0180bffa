/** Records when a request arrived (L3), for audit, access log and spans. Upstream: filters/request_received_time.go. */
import type { Clock } from '#base/clock'
import type { Stage } from '../core/stage.ts'

export function receivedTimestampStage(clock: Clock): Stage {
  return {
    name: 'receivedTimestamp',
    handle(request, next) {
      request.receivedMs = clock.now()
      return next(request)
    },
  }
}
