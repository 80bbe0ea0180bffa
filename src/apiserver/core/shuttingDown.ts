/** The refusal of requests that reach a server or a cache which ends (L3). Clients retry after a second. Upstream: apiserver/pkg/server/filters/waitgroup.go. */
import { StatusError } from '#api/machinery/status'

export function shuttingDown(): StatusError {
  return new StatusError('ServiceUnavailable', 'apiserver is shutting down', { details: { retryAfterSeconds: 1 } })
}
