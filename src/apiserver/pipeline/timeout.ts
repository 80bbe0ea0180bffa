/**
 * Answers a short request when its time is over (L3), and cancels the work on it.
 * Upstream: apiserver/pkg/server/filters/timeout.go.
 */
import { StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Answer } from '../core/answer.ts'
import type { ServerRequest } from '../core/request.ts'
import type { Handler, Stage } from '../core/stage.ts'

export function timeoutStage(clock: Clock): Stage {
  return {
    name: 'timeout',
    // Long-running requests have no deadline.
    handle: (request, next) => (request.timeoutMs === undefined ? next(request) : withTimeout(clock, request, next, request.timeoutMs)),
  }
}

/** At the deadline, the request's cancellation stops the work on it. */
function withTimeout(clock: Clock, request: ServerRequest, next: Handler, timeoutMs: number): Promise<Answer> | Answer {
  const pending = next(request)
  if (!(pending instanceof Promise)) return pending
  return new Promise((resolve, reject) => {
    const timer = clock.timer(timeoutMs, () => {
      request.cancellation.abort()
      request.terminated = true
      reject(new StatusError('Timeout', 'Timeout: request did not complete within the allotted timeout', { details: {} }))
    })
    pending.then(
      (answer) => {
        timer.cancel()
        resolve(answer)
      },
      (error) => {
        timer.cancel()
        reject(error)
      },
    )
  })
}
