/**
 * How a client learns that there is no room for its request (L3): plain text over HTTP, as upstream; callers in this process get the Status
 * that client libraries make of it. Upstream: server/filters/maxinflight.go tooManyRequests.
 */
import { tooManyRequests } from '#api/machinery/status'
import type { Answer } from '../core/answer.ts'
import type { ServerRequest } from '../core/request.ts'

const message = 'Too many requests, please try again later.'

const bytes = Buffer.from(`${message}\n`)

/**
 * Answers are the same but for a number of seconds, so each is made once: to refuse must cost less than to serve.
 * @throws Status TooManyRequests to callers in this process
 */
export function createTooManyRequests(): (request: ServerRequest, retryAfterSeconds: number) => Answer {
  const made: Answer[] = []
  return (request, seconds) => {
    if (request.inProcessUser) throw tooManyRequests(message, seconds)
    made[seconds] ??= {
      type: 'bytes',
      status: 429,
      contentType: 'text/plain; charset=utf-8',
      bytes,
      headers: { 'retry-after': String(seconds), 'x-content-type-options': 'nosniff' },
    }
    return made[seconds]
  }
}
