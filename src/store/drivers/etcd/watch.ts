/**
 * One watch of a range of keys on etcd (L2): a stream of its own, whose events are handed on by revision. A revision is delivered whole, also where the
 * server cuts it into fragments. Where progress notifications may overtake events, the watch covers every key: each revision of the store arrives as an
 * event, and so shows by itself how far the watch is. A watch begins one revision before the one that is wanted: etcd 3.4 and 3.5 drop a deletion at the
 * revision of a compaction, without an error, for a watch that begins there (etcd issue 18089). Upstream: etcd server/etcdserver/api/v3rpc/watch.go, client/v3/watch.go.
 */
import type { Clock, Timer } from '#base/clock'
import { GrpcError } from '#grpc/grpcError'
import type { Revision, StoreEventBatch, StoreWatchOptions } from '../../store.ts'
import { storeError } from '../../storeError.ts'
import type { Endpoints } from './endpoints.ts'
import { type EtcdEvent, type EtcdHeader, type KeyMapping, type RangeTest, rangeTest, storeEventOf } from './operations.ts'

export interface EtcdWatchDeps {
  readonly endpoints: Endpoints
  readonly keys: KeyMapping
  readonly clock: Clock
}

interface EtcdWatchResponse {
  readonly header: EtcdHeader
  readonly created: boolean
  readonly canceled: boolean
  readonly compactRevision: number
  readonly cancelReason: string
  readonly fragment: boolean
  readonly events: readonly EtcdEvent[]
}

/** Time between two requests for progress while a read waits for it. Upstream: cacher/progress. */
const progressPauseMs = 100
const allKeys = { key: Buffer.from([0]), rangeEnd: Buffer.from([0]) }

export class EtcdWatch {
  readonly #deps: EtcdWatchDeps
  readonly #options: StoreWatchOptions
  readonly #onBatch: (batch: StoreEventBatch) => void
  /** Everything up to this revision has been delivered. */
  #delivered: Revision
  #wanted: Revision = 0
  #timer: Timer | undefined
  #hasEnded = false
  /** Set while the watch is registered at a server whose progress notifications come after all earlier events. */
  #requestProgress: (() => void) | undefined
  readonly #isInRange: RangeTest
  #fragments: EtcdEvent[] = []
  #setCreated: () => void = () => {}
  /** Resolves when the server has registered the watch: later writes are seen. Also when the watch ends before that. */
  readonly created: Promise<void>

  constructor(deps: EtcdWatchDeps, options: StoreWatchOptions, onBatch: (batch: StoreEventBatch) => void) {
    this.#deps = deps
    this.#options = options
    this.#onBatch = onBatch
    this.#delivered = (options.startRevision ?? 1) - 1
    this.#isInRange = rangeTest(deps.keys, options.from, options.to)
    this.created = new Promise((resolve) => {
      this.#setCreated = resolve
    })
  }

  /** Resolves when the signal fires. @throws StoreError; whatever the receiver of batches throws */
  async run(signal: AbortSignal): Promise<void> {
    const { endpoints } = this.#deps
    const call = endpoints.duplex<EtcdWatchResponse>('Watch.Watch', signal)
    try {
      await call.opened
      const hasSoundProgress = endpoints.hasSoundProgress()
      call.send({ createRequest: this.#createRequest(hasSoundProgress) })
      if (hasSoundProgress) this.#requestProgress = () => call.send({ progressRequest: {} })
      for await (const response of call.messages) this.#take(response)
      if (!signal.aborted) throw storeError('unavailable', { cause: new GrpcError('UNAVAILABLE', 'etcd ended the watch') })
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      this.#hasEnded = true
      this.#timer?.cancel()
      this.#setCreated()
    }
  }

  /** Sees to it that the progress up to `revision` is reported soon, also if nothing of the range has changed. */
  confirm(revision: Revision): void {
    if (this.#hasEnded || revision <= Math.max(this.#delivered, this.#wanted)) return
    this.#wanted = revision
    this.#timer?.cancel()
    this.#ask()
  }

  #ask(): void {
    if (this.#delivered >= this.#wanted) return
    this.#requestProgress?.()
    this.#timer = this.#deps.clock.timer(progressPauseMs, () => this.#ask())
  }

  #createRequest(hasSoundProgress: boolean): object {
    const { from, to, startRevision, previous } = this.#options
    const { keys } = this.#deps
    const range = hasSoundProgress ? { key: keys.toEtcd(from), ...(to === undefined ? {} : { rangeEnd: keys.toEtcd(to) }) } : allKeys
    const start = startRevision === undefined ? {} : { startRevision: Math.max(startRevision - 1, 1) }
    return { ...range, ...start, prevKv: previous ?? false, progressNotify: true, fragment: true }
  }

  #take({ header, created, canceled, compactRevision, cancelReason, fragment, events }: EtcdWatchResponse): void {
    if (canceled && compactRevision > 0) throw storeError('compacted', { revision: compactRevision })
    if (canceled) throw storeError('unavailable', { cause: new Error(cancelReason || 'etcd canceled the watch') })
    if (created) {
      // A watch from now on has nothing to wait for before this revision.
      if (this.#options.startRevision === undefined) this.#delivered = Math.max(this.#delivered, header.revision)
      this.#setCreated()
      return
    }
    if (events.length === 0 && this.#fragments.length === 0) {
      if (this.#requestProgress) this.#reached(header.revision)
      return
    }
    this.#fragments.push(...events)
    if (fragment) return
    const whole = this.#fragments
    this.#fragments = []
    for (const batch of byRevision(whole)) this.#deliver(batch)
  }

  #deliver(events: readonly EtcdEvent[]): void {
    const revision = events[0]?.kv.modRevision ?? 0
    if (revision < (this.#options.startRevision ?? 0)) return
    const own = events.filter(({ kv }) => this.#isInRange(kv.key))
    if (own.length === 0) {
      this.#reached(revision)
      return
    }
    this.#delivered = revision
    this.#onBatch({ revision, events: own.map((event) => storeEventOf(this.#deps.keys, event)) })
  }

  #reached(revision: Revision): void {
    if (revision <= this.#delivered) return
    this.#delivered = revision
    this.#options.onProgress?.(revision)
  }
}

function byRevision(events: readonly EtcdEvent[]): EtcdEvent[][] {
  const batches: EtcdEvent[][] = []
  for (const event of events) {
    const last = batches.at(-1)
    if (last?.[0]?.kv.modRevision === event.kv.modRevision) last.push(event)
    else batches.push([event])
  }
  return batches
}
