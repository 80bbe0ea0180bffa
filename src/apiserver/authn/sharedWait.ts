/**
 * Shares one wait among all requests that need it at the same time (L3), since anyone who has had a token can make a server wait for its caches.
 * At most one wait is under way; requests that come meanwhile share the next one, because the first may have begun before what they need was written.
 */
import { unlessAborted } from '#base/orAborted'
import type { Cancellation } from '../core/cancellation.ts'

/** Resolves when the wait is over, whether it succeeded or not, and when the request is cancelled. */
export type SharedWait = (cancellation?: Pick<Cancellation, 'signal'>) => Promise<void>

export function sharedWait(wait: () => Promise<void> | undefined): SharedWait {
  let underWay: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined
  const begin = async () => {
    next = undefined
    await wait()
  }
  return (cancellation) => {
    if (!next) {
      next = underWay.then(begin).catch(() => undefined)
      underWay = next
    }
    return cancellation ? unlessAborted(next, cancellation.signal) : next
  }
}
