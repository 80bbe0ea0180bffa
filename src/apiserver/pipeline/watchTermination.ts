/**
 * Counts watches, so that a shutdown can end them gradually (L3; --shutdown-watch-termination-grace-period), and refuses new ones
 * meanwhile. Upstream: apiserver/pkg/server/filters/watch_termination.go.
 */
import type { ServerRequest } from '../core/request.ts'
import { shuttingDown } from '../core/shuttingDown.ts'
import { finished, type Handler, type Stage } from '../core/stage.ts'
import type { RequestGroup } from './requestGroup.ts'

export function watchTerminationStage(watches: RequestGroup): Stage {
  return {
    name: 'watchTermination',
    handle: (request, next) => (request.info?.verb === 'watch' ? counted(request, next) : next(request)),
  }

  function counted(request: ServerRequest, next: Handler) {
    if (!watches.add()) throw shuttingDown()
    return finished(next, request, (answer) => {
      if (answer?.type === 'watch') answer.session.whenClosed(() => watches.done())
      else watches.done()
    })
  }
}
