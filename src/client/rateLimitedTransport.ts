/**
 * A Transport that does not ask more often than agreed (L2): `burst` calls at once, then `qps` a second. Watches are not limited.
 * Upstream: client-go/util/flowcontrol, rest.Config QPS and Burst, rest/request.go Watch (v1.36).
 */
import type { Clock } from '#base/clock'
import type { Transport } from './transport.ts'
import { createTokenBucket } from './workqueue/rateLimiter.ts'

export interface RateLimit {
  readonly qps: number
  readonly burst: number
}

/** Calls wait for their turn, in order; aborting one that waits rejects it. */
export function rateLimitedTransport(transport: Transport, clock: Clock, { qps, burst }: RateLimit): Transport {
  const bucket = createTokenBucket(clock, qps, burst)
  const turn = async (signal: AbortSignal | undefined) => {
    const waitMs = bucket.takeMs()
    if (waitMs > 0) await clock.sleep(waitMs, signal)
  }
  return {
    async request(request, signal) {
      await turn(signal)
      return transport.request(request, signal)
    },
    watch: (request, signal) => transport.watch(request, signal),
  }
}
