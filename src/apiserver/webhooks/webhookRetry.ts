/**
 * Asks a webhook again for a while when it is in trouble that may pass (L3). Upstream: apiserver/pkg/util/webhook/webhook.go, with the defaults of
 * kube-apiserver's webhooks for authentication and authorization.
 */
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Random } from '#base/random'

const attempts = 5
const usualFirstDelayMs = 500
const delayFactor = 1.5
const delayJitter = 0.2

/** @throws what the last attempt threw */
export async function insistently<T>(
  { clock, random, firstDelayMs = usualFirstDelayMs }: { readonly clock: Clock; readonly random: Random; readonly firstDelayMs?: number },
  call: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  let delayMs = firstDelayMs
  for (let attempt = 1; ; attempt++) {
    try {
      return await call()
    } catch (error) {
      if (attempt === attempts || !isPassing(error)) throw error
      await clock.sleep(delayMs * (1 + random.next() * delayJitter), signal)
      delayMs *= delayFactor
    }
  }
}

/** Trouble that may be over at the next attempt. */
function isPassing(error: unknown): boolean {
  if (isStatus(error)) return ['InternalError', 'Timeout', 'ServerTimeout', 'TooManyRequests', 'ServiceUnavailable'].includes(error.reason)
  const { code } = ((error as Error).cause ?? error) as { readonly code?: string }
  return code === 'ECONNRESET'
}
