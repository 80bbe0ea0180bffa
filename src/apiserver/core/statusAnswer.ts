/** The answer that carries a Status (L3). Upstream: handlers/responsewriters ErrorNegotiated. */
import type { StatusError } from '#api/machinery/status'
import type { Answer, Encoding } from './answer.ts'

/** With a Retry-After header if the error has retryAfterSeconds. */
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
