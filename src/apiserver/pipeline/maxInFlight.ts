/**
 * Bounds how many requests run at once (L3): more are refused with Retry-After of a second, or wait. Long-running ones do not count.
 * Upstream: apiserver/pkg/server/filters/maxinflight.go.
 */
import type { ServerRequest } from '../core/request.ts'
import { finished, isLongRunning, type Stage } from '../core/stage.ts'
import { isOwnComponent } from '../flowcontrol/ownComponent.ts'
import { createTooManyRequests } from './tooManyRequests.ts'

export interface InFlightLimits {
  /** get, list. 0: no limit, as for the other. */
  readonly readOnly: number
  readonly mutating: number
}

const readOnlyVerbs: ReadonlySet<string> = new Set(['get', 'list', 'watch'])

export function maxInFlightStage(limits: InFlightLimits): Stage {
  const tooManyRequests = createTooManyRequests()
  const places = { readOnly: createPlaces(limits.readOnly), mutating: createPlaces(limits.mutating) }
  return {
    name: 'maxInFlight',
    handle(request, next) {
      // In-process administrators, such as the server itself, do not count against the limit.
      if (isLongRunning(request) || (request.inProcessUser && isPrivileged(request))) return next(request)
      const kind = readOnlyVerbs.has(request.info?.verb ?? '') ? places.readOnly : places.mutating
      if (kind.take()) return finished(next, request, kind.free)
      // Administrators must get through an overload.
      if (isPrivileged(request)) return next(request)
      if (!isOwnComponent(request)) return tooManyRequests(request, 1)
      return kind.wait().then(() => finished(next, request, kind.free))
    },
  }
}

function createPlaces(limit: number) {
  let taken = 0
  const waiting: (() => void)[] = []
  return {
    /** False when the limit is reached. */
    take: () => (taken < limit || limit === 0) && ++taken > 0,
    /** Resolves in order of arrival, with the place taken. */
    wait: () => new Promise<void>((resolve) => waiting.push(resolve)),
    free() {
      const next = waiting.shift()
      if (next) next()
      else taken--
    },
  }
}

function isPrivileged(request: ServerRequest): boolean {
  return request.user?.groups.includes('system:masters') ?? false
}
