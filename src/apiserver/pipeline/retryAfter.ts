/**
 * While the server shuts down, sends clients elsewhere (L3; --shutdown-send-retry-after): 429, Retry-After, and the connection closes. Probes,
 * metrics and the server's own requests still pass. Upstream: apiserver/pkg/server/filters/with_retry_after.go.
 */
import { textAnswer } from '../core/answer.ts'
import type { ServerRequest } from '../core/request.ts'
import type { Stage } from '../core/stage.ts'

const shuttingDown = textAnswer(429, 'The apiserver is shutting down, please try again later.\n', {
  connection: 'close',
  'retry-after': '5',
  'x-content-type-options': 'nosniff',
})

export function retryAfterStage(shutdown: AbortSignal): Stage {
  return {
    name: 'retryAfter',
    handle: (request, next) => (shutdown.aborted && !isExemptFromRetryAfter(request) ? shuttingDown : next(request)),
  }
}

const exemptPaths = /^\/(readyz|livez|healthz|metrics)/

/** These requests pass the wait group too, or the server would wait for itself. */
export function isExemptFromRetryAfter({ path, headers }: ServerRequest): boolean {
  const agent = headers['user-agent']
  return (typeof agent === 'string' && /^kube-apiserver(\/|$)/.test(agent)) || exemptPaths.test(path)
}
