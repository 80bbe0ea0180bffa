/**
 * Short requests get an answer within the timeout (L3). `?timeout=` may shorten it, as upstream's deadline filter.
 * Upstream: apiserver/pkg/endpoints/filters/request_deadline.go, pkg/server/filters/timeout.go.
 */
import { parseDuration } from '#api/machinery/duration'
import { badRequest, StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Answer } from '../answer.ts'
import type { ServerRequest } from '../request.ts'
import { type Handler, isLongRunning, type Stage } from './stage.ts'

export function deadlineStage(clock: Clock, requestTimeoutMs: number): Stage {
  return {
    name: 'deadline',
    handle(request, next) {
      if (isLongRunning(request)) return next(request)
      const timeoutMs = wantedTimeout(request, requestTimeoutMs)
      return withTimeout(clock, request, next, timeoutMs)
    },
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

function wantedTimeout(request: ServerRequest, most: number): number {
  const text = request.query.get('timeout')
  if (!text) return most
  const ms = parseDuration(text)
  if (ms === undefined || ms < 0) throw badRequest(`invalid timeout specified in the request URL - time: invalid duration ${JSON.stringify(text)}`)
  return ms === 0 ? most : Math.min(ms, most)
}
