/**
 * Turns every failure into a Status answer (L3), in the form that the client accepts: refusals unchanged, a stack overflow into a 413, anything
 * else into a logged 500. No error leaves uncaught. Upstream: apiserver/pkg/server/filters/wrap.go, handlers/responsewriters ErrorNegotiated.
 */
import { internalError, StatusError } from '#api/machinery/status'
import type { Logger } from '#base/log'
import { errorEncoding } from '../core/negotiate.ts'
import type { Stage } from '../core/stage.ts'
import { statusAnswer } from '../core/statusAnswer.ts'

export function panicRecoveryStage(log: Logger): Stage {
  return {
    name: 'panicRecovery',
    handle(request, next) {
      const recover = (error: unknown) => {
        if (error instanceof StatusError) return statusAnswer(error, errorEncoding(request))
        if (request.cancellation.aborted) return statusAnswer(new StatusError('Timeout', 'the client went away'))
        if (overflowsStack(error)) return statusAnswer(tooComplex(), errorEncoding(request))
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

/** Only a client's body causes this: its depth is limited, so it has hundreds of thousands of values, each with an error or a warning. */
function overflowsStack(error: unknown): boolean {
  return error instanceof RangeError && error.message === 'Maximum call stack size exceeded'
}

function tooComplex(): StatusError {
  return new StatusError('RequestEntityTooLarge', 'the request has too many values or faults to be handled; send a smaller one')
}
