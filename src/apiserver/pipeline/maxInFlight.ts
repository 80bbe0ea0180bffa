/**
 * Bounds how many requests are worked on at once (L3): more are told to come back in a second. Long-running ones do not count.
 * Upstream: apiserver/pkg/server/filters/maxinflight.go.
 */
import { tooManyRequests } from '#api/machinery/status'
import type { ServerRequest } from '../request.ts'
import { isLongRunning, type Stage } from './stage.ts'

export interface InFlightLimits {
  /** get, list. */
  readonly readOnly: number
  readonly mutating: number
}

const readOnlyVerbs: ReadonlySet<string> = new Set(['get', 'list', 'watch'])

export function maxInFlightStage(limits: InFlightLimits): Stage {
  const inFlight = { readOnly: 0, mutating: 0 }
  return {
    name: 'maxInFlight',
    async handle(request, next) {
      // Administrators, this server among them, must get through an overload; they take no place from others either.
      if (isLongRunning(request) || isPrivileged(request)) return next(request)
      const kind = readOnlyVerbs.has(request.info?.verb ?? '') ? 'readOnly' : 'mutating'
      if (inFlight[kind] >= limits[kind]) throw tooManyRequests('Too many requests, please try again later.', 1)
      inFlight[kind]++
      try {
        return await next(request)
      } finally {
        inFlight[kind]--
      }
    },
  }
}

function isPrivileged(request: ServerRequest): boolean {
  return request.user?.groups.includes('system:masters') ?? false
}
