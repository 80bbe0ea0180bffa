/**
 * The answer 429 (L3): plain text over HTTP, as upstream; in-process callers get the Status that client libraries make of it.
 * Upstream: server/filters/maxinflight.go tooManyRequests.
 */
import { tooManyRequests } from '#api/machinery/status'
import type { Answer } from '../core/answer.ts'
import type { ServerRequest } from '../core/request.ts'

const message = 'Too many requests, please try again later.'

const bytes = Buffer.from(`${message}\n`)

/**
 * Answers differ only in the number of seconds, so each is made once: a refusal must cost less than serving the request.
 * @throws Status TooManyRequests to callers in this process
 */
export function createTooManyRequests(): (request: ServerRequest, retryAfterSeconds: number) => Answer {
  const made: Answer[] = []
  return (request, seconds) => {
    request.terminated = true
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
