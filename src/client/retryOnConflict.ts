/**
 * Repeats a read-change-write when another client was faster (L2). Upstream: client-go/util/retry (v1.36).
 */
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Random } from '#base/random'

export interface RetryOptions {
  /** How often `write` is called at most. */
  readonly steps: number
  readonly initialMs: number
  readonly factor: number
  readonly jitter: number
}

/** For writes that other writers cross now and then. */
export const defaultRetry: RetryOptions = { steps: 5, initialMs: 10, factor: 1, jitter: 0.1 }
/** For conflicts with many active writers. */
export const defaultBackoff: RetryOptions = { steps: 4, initialMs: 10, factor: 5, jitter: 0.1 }

/** `write` must read the object itself: the version of the last attempt would conflict again each time. @throws the last Conflict, or any other error at once. */
export async function retryOnConflict<T>(
  deps: { readonly clock: Clock; readonly random: Random },
  write: () => Promise<T>,
  { options = defaultRetry, signal }: { readonly options?: RetryOptions; readonly signal?: AbortSignal } = {},
): Promise<T> {
  let waitMs = options.initialMs
  for (let step = 1; ; step++) {
    try {
      return await write()
    } catch (error) {
      if (!isStatus(error, 'Conflict') || step >= options.steps) throw error
    }
    await deps.clock.sleep(waitMs * (1 + options.jitter * deps.random.next()), signal)
    waitMs *= options.factor
  }
}
