/**
 * Allows pages of other origins to call the API (L3; --cors-allowed-origins), and answers their preflights, which have no credentials.
 * Upstream: apiserver/pkg/server/filters/cors.go.
 */
import { RE2JS } from 're2js'
import type { BytesAnswer } from '../core/answer.ts'
import type { Stage } from '../core/stage.ts'

const preflight: BytesAnswer = { type: 'bytes', status: 204, contentType: '', bytes: new Uint8Array() }

const allowed = {
  'access-control-allow-methods': 'POST, GET, OPTIONS, PUT, DELETE, PATCH',
  'access-control-allow-headers': 'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since',
  'access-control-expose-headers': 'Date',
  'access-control-allow-credentials': 'true',
}

/** `origins` are regular expressions in Go's syntax, which may match anywhere in the Origin header. @throws when one does not parse */
export function corsStage(origins: readonly string[]): Stage {
  const patterns = origins.map((origin) => RE2JS.compile(origin))
  return {
    name: 'cors',
    handle(request, next) {
      const { origin } = request.headers
      if (typeof origin !== 'string' || origin === '' || !patterns.some((pattern) => pattern.matcher(origin).find())) return next(request)
      Object.assign(request.responseHeaders ?? {}, { 'access-control-allow-origin': origin, ...allowed })
      return request.method === 'OPTIONS' ? preflight : next(request)
    },
  }
}
