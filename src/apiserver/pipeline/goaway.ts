/**
 * Sends GOAWAY on random requests over HTTP/2 (L3; --goaway-chance), so that clients reconnect and load balancers spread them over
 * servers. Open requests are finished: the listener turns `connection: close` into a GOAWAY. Upstream: apiserver/pkg/server/filters/goaway.go.
 */
import type { Random } from '#base/random'
import type { Stage } from '../core/stage.ts'

export function goawayStage(chance: number, random: Random): Stage {
  return {
    name: 'goaway',
    handle(request, next) {
      if (request.isHttp2 && request.responseHeaders && random.next() < chance) request.responseHeaders.connection = 'close'
      return next(request)
    },
  }
}
