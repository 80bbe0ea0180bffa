/**
 * Marks requests that arrive before all paths are registered (L3): a "not found" could be wrong then, and controllers act on it.
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
