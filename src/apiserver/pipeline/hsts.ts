/** Strict-Transport-Security for browsers (L3; --strict-transport-security-directives). Upstream: apiserver/pkg/server/filters/hsts.go. */
import type { Stage } from '../core/stage.ts'

export function hstsStage(directives: readonly string[]): Stage {
  const value = directives.join('; ')
  return {
    name: 'hsts',
    handle(request, next) {
      if (request.responseHeaders) request.responseHeaders['strict-transport-security'] = value
      return next(request)
    },
  }
}
