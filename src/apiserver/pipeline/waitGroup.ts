/** Turns requests away once the server shuts down, so that clients go elsewhere (L3). Upstream: genericfilters.WithWaitGroup. */
import { StatusError } from '#api/machinery/status'
import { isLongRunning, type Stage } from './stage.ts'

export function drainStage(shutdown: AbortSignal): Stage {
  return {
    name: 'drain',
    handle(request, next) {
      if (shutdown.aborted && isLongRunning(request)) {
        throw new StatusError('ServiceUnavailable', 'apiserver is shutting down.', { details: { retryAfterSeconds: 1 } })
      }
      return next(request)
    },
  }
}
