/**
 * Counts watches, so that a shutdown can let them end in order (L3; --shutdown-watch-termination-grace-period), and lets no new one in
 * meanwhile. Upstream: apiserver/pkg/server/filters/watch_termination.go.
 */

import type { ServerRequest } from '../request.ts'
import type { RequestGroup } from './requestGroup.ts'
import type { Handler, Stage } from './stage.ts'
import { shuttingDown } from './waitGroup.ts'

export function watchTerminationStage(watches: RequestGroup): Stage {
  return {
    name: 'watchTermination',
    handle: (request, next) => (request.info?.verb === 'watch' ? counted(request, next) : next(request)),
  }

  async function counted(request: ServerRequest, next: Handler) {
    if (!watches.add()) throw shuttingDown()
    let open = false
    try {
      const answer = await next(request)
      if (answer.type === 'watch') {
        open = true
        answer.session.whenClosed(() => watches.done())
      }
      return answer
    } finally {
      if (!open) watches.done()
    }
  }
}
