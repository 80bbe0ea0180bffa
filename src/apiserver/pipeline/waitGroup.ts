/**
 * Counts short requests, for which a shutdown waits, and refuses them once it waits (L3). Long-running ones are not counted; they are refused as soon
 * as the shutdown begins, since the watch caches have stopped.
 * Upstream: apiserver/pkg/server/filters/waitgroup.go.
 */
import { shuttingDown } from '../core/shuttingDown.ts'
import { finished, isLongRunning, type Stage } from '../core/stage.ts'
import type { RequestGroup } from './requestGroup.ts'
import { isExemptFromRetryAfter } from './retryAfter.ts'

export function waitGroupStage(requests: RequestGroup, shutdown: AbortSignal): Stage {
  const done = () => requests.done()
  return {
    name: 'waitGroup',
    handle(request, next) {
      if (isLongRunning(request)) {
        if (shutdown.aborted) throw shuttingDown()
        return next(request)
      }
      if (!requests.add()) {
        // In-process components end before the server, and must finish their writes.
        if (request.inProcessUser || isExemptFromRetryAfter(request)) return next(request)
        throw shuttingDown()
      }
      return finished(next, request, done)
    },
  }
}
