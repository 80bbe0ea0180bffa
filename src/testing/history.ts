/** Everything that ever changed in a test cluster's store, in order: two runs of one seed have the same history, to the byte. */
import type { Clock } from '#base/clock'
import type { Store } from '#store/store'

export interface Change {
  readonly revision: number
  /** The cluster's time, in milliseconds since the epoch. */
  readonly timeMs: number
  readonly type: 'put' | 'delete'
  readonly key: string
  /** The object as JSON; empty for a deletion. */
  readonly value: string
}

export class History {
  readonly #changes: Change[] = []
  readonly #stop = new AbortController()
  readonly #following: Promise<void>

  constructor(store: Store, clock: Clock) {
    const onBatch: Parameters<Store['watch']>[1] = ({ revision, events }) => {
      for (const { type, kv } of events) this.#changes.push({ revision, timeMs: clock.now(), type, key: kv.key, value: Buffer.from(kv.value).toString() })
    }
    this.#following = store.watch({ from: '/', to: '0' }, onBatch, this.#stop.signal)
  }

  get changes(): readonly Change[] {
    return this.#changes
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#following
  }
}
