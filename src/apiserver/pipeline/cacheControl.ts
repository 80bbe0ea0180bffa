/** Keeps authorized answers out of shared caches (L3). Upstream: apiserver/pkg/endpoints/filters/cachecontrol.go. */
import type { Stage } from '../core/stage.ts'

export const cacheControlStage: Stage = {
  name: 'cacheControl',
  handle(request, next) {
    if (request.responseHeaders) request.responseHeaders['cache-control'] = 'no-cache, private'
    return next(request)
  },
}
