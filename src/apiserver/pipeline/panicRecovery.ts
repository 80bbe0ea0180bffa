/** Turns every failure into a Status answer (L3): refusals as they are, anything else into a logged 500. Nothing leaves uncaught. */
import { internalError, StatusError } from '#api/machinery/status'
import type { Logger } from '#base/log'
import type { Answer } from '../answer.ts'
import type { Stage } from './stage.ts'

export function panicRecoveryStage(log: Logger): Stage {
  return {
    name: 'panicRecovery',
    async handle(request, next) {
      try {
        return await next(request)
      } catch (error) {
        if (error instanceof StatusError) return statusAnswer(error)
        if (request.signal.aborted) return statusAnswer(new StatusError('Timeout', 'the client went away'))
        log.error(error, 'A request failed unexpectedly', { method: request.method, path: request.path, auditId: request.auditId })
        return statusAnswer(internalError(error))
      }
    },
  }
}

export function statusAnswer(error: StatusError): Answer {
  const retryAfter = error.details?.retryAfterSeconds
  return {
    type: 'value',
    status: error.code,
    value: error.toStatus(),
    ...(retryAfter ? { headers: { 'retry-after': String(retryAfter) } } : {}),
  }
}
