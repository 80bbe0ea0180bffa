/**
 * How a client learns that there is no room for its request (L3): plain text over HTTP, as upstream; callers in this process get the Status
 * that client libraries make of it. Upstream: server/filters/maxinflight.go tooManyRequests.
 */
import { tooManyRequests } from '#api/machinery/status'
import { type Answer, textAnswer } from '../answer.ts'
import type { ServerRequest } from '../request.ts'

const message = 'Too many requests, please try again later.'

/** @throws Status TooManyRequests to callers in this process */
export function tooManyRequestsAnswer(request: ServerRequest, retryAfterSeconds: number): Answer {
  if (request.inProcessUser) throw tooManyRequests(message, retryAfterSeconds)
  return textAnswer(429, `${message}\n`, { 'retry-after': String(retryAfterSeconds), 'x-content-type-options': 'nosniff' })
}
