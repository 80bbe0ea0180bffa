/**
 * Answers a short request when its time is over (L3), and tells what still works on it to stop.
 * Upstream: apiserver/pkg/server/filters/timeout.go.
 */
import { StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Answer } from '../answer.ts'
import type { ServerRequest } from '../request.ts'
import type { Handler, Stage } from './stage.ts'

export function timeoutStage(clock: Clock): Stage {
  return {
    name: 'timeout',
    // Long-running requests have no deadline.
    handle: (request, next) => (request.timeoutMs === undefined ? next(request) : withTimeout(clock, request, next, request.timeoutMs)),
  }
}

/** What still works on the request when its time is over is told so by the request's signal. */
function withTimeout(clock: Clock, request: ServerRequest, next: Handler, timeoutMs: number): Promise<Answer> | Answer {
  const client = request.signal
  const work = new AbortController()
  const clientGone = () => work.abort(client.reason)
  if (client.aborted) clientGone()
  else client.addEventListener('abort', clientGone, { once: true })
  request.signal = work.signal
  const pending = next(request)
  const finish = () => {
    client.removeEventListener('abort', clientGone)
    // The answer may be streamed for longer than the work on it took: it follows the client again.
    request.signal = client
  }
  if (!(pending instanceof Promise)) {
    finish()
    return pending
  }
  return new Promise((resolve, reject) => {
    const timer = clock.timer(timeoutMs, () => {
      finish()
      work.abort()
      reject(new StatusError('Timeout', 'Timeout: request did not complete within the allotted timeout', { details: {} }))
    })
    pending.then(
      (answer) => {
        timer.cancel()
        finish()
        resolve(answer)
      },
      (error) => {
        timer.cancel()
        finish()
        reject(error)
      },
    )
  })
}
