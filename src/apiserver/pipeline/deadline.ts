/**
 * Short requests get an answer within the timeout (L3). `?timeout=` may shorten it, as upstream's deadline filter.
 * Upstream: apiserver/pkg/endpoints/filters/request_deadline.go, pkg/server/filters/timeout.go.
 */
import { parseDuration } from '#api/machinery/duration'
import { badRequest, StatusError } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Answer } from '../answer.ts'
import type { ServerRequest } from '../request.ts'
import { isLongRunning, type Stage } from './stage.ts'

export function deadlineStage(clock: Clock, requestTimeoutMs: number): Stage {
  return {
    name: 'deadline',
    handle(request, next) {
      if (isLongRunning(request)) return next(request)
      const timeoutMs = wantedTimeout(request, requestTimeoutMs)
      const pending = next(request)
      if (!(pending instanceof Promise)) return pending
      return withTimeout(clock, pending, timeoutMs)
    },
  }
}

function withTimeout(clock: Clock, pending: Promise<Answer>, timeoutMs: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const timer = clock.timer(timeoutMs, () => {
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

function wantedTimeout(request: ServerRequest, most: number): number {
  const text = request.query.get('timeout')
  if (!text) return most
  const ms = parseDuration(text)
  if (ms === undefined || ms < 0) throw badRequest(`invalid timeout specified in the request URL - time: invalid duration ${JSON.stringify(text)}`)
  return ms === 0 ? most : Math.min(ms, most)
}
