/**
 * Marks requests that come before every path is known (L3): for them "not found" would be a guess, and controllers act on it.
 * The router answers them with 503 instead. Upstream: apiserver/pkg/endpoints/filters/mux_discovery_complete.go.
 */
import type { Stage } from '../core/stage.ts'

export function muxAndDiscoveryStage(isComplete: () => boolean): Stage {
  return {
    name: 'muxAndDiscovery',
    handle(request, next) {
      if (!isComplete()) request.pathsIncomplete = true
      return next(request)
    },
  }
}
