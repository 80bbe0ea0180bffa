/**
 * Turns every failure into a Status answer (L3), in the form that the client accepts: refusals as they are, anything else into a logged 500.
 * Nothing leaves uncaught. Upstream: apiserver/pkg/server/filters/wrap.go, handlers/responsewriters ErrorNegotiated.
 */
import { internalError, StatusError } from '#api/machinery/status'
import type { Logger } from '#base/log'
import type { Answer, Encoding } from '../answer.ts'
import { errorEncoding } from '../endpoints/negotiate.ts'
import type { Stage } from './stage.ts'

export function panicRecoveryStage(log: Logger): Stage {
  return {
    name: 'panicRecovery',
    handle(request, next) {
      const recover = (error: unknown) => {
        if (error instanceof StatusError) return statusAnswer(error, errorEncoding(request))
        if (request.cancellation.aborted) return statusAnswer(new StatusError('Timeout', 'the client went away'))
        log.error(error, 'A request failed unexpectedly', { method: request.method, path: request.path, auditId: request.auditId })
        return statusAnswer(internalError(error), errorEncoding(request))
      }
      try {
        const answer = next(request)
        return answer instanceof Promise ? answer.catch(recover) : answer
      } catch (error) {
        return recover(error)
      }
    },
  }
}

export function statusAnswer(error: StatusError, encoding?: Encoding): Answer {
  const retryAfter = error.details?.retryAfterSeconds
  return {
    type: 'value',
    status: error.code,
    value: error.toStatus(),
    ...(encoding ? { encoding } : {}),
    ...(retryAfter ? { headers: { 'retry-after': String(retryAfter) } } : {}),
  }
}
