/** The newest refusals of each user (L2), kept always: they are rare, and the question comes afterwards. One user's do not push out another's. */
import type { TracedRequest } from '#api/debug/traces'
import { LruCache } from '#base/lruCache'
import { BoundedRing } from './boundedRing.ts'

const mostUsers = 64
const mostOfUser = 32
const mostBytesOfUser = 64 * 1024

export class Refusals {
  readonly #byUser = new LruCache<string, BoundedRing<TracedRequest>>(mostUsers)

  add(refusal: TracedRequest): void {
    const { user, as = user } = refusal
    let own = this.#byUser.get(as)
    if (!own) {
      own = new BoundedRing(mostOfUser, mostBytesOfUser)
      this.#byUser.set(as, own)
    }
    own.push(refusal, JSON.stringify(refusal).length)
  }

  *[Symbol.iterator](): Generator<TracedRequest> {
    for (const own of this.#byUser.values()) yield* own.newest()
  }
}
