/**
 * etcd's Watch service (L2): many watches in one call. A client that reads too slowly gets no unbounded queue: its watches stop and resume from the store's
 * history when it has caught up. Upstream: etcd server/etcdserver/api/v3rpc/watch.go, server/storage/mvcc/watchable_store.go (v3.6).
 */
import type { Timer } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { aborted } from '#base/orAborted'
import type { StreamCall } from '#grpc/grpcService'
import type { Revision, StoreEvent, StoreEventBatch } from '../store.ts'
import { isStoreError } from '../storeError.ts'
import type { EtcdApi } from './api.ts'
import type { GuardedService } from './guardedService.ts'
import { endOf, keyOf, keyValueMessage } from './messages.ts'
import { refusal } from './refusals.ts'

interface CreateRequest {
  readonly key: Buffer
  readonly rangeEnd: Buffer
  readonly startRevision: number
  readonly progressNotify: boolean
  readonly filters: readonly ('NOPUT' | 'NODELETE' | number)[]
  readonly prevKv: boolean
  readonly watchId: number
  readonly fragment: boolean
}

export interface WatchRequest {
  readonly createRequest: CreateRequest | null
  readonly cancelRequest: { readonly watchId: number } | null
  readonly progressRequest: object | null
}

/** Upstream: InvalidWatchID, for answers about no single watch. */
const noWatch = -1
const smallestKey = Buffer.of(0)
/** Watches of one call; etcd does not bound them. */
const maxWatches = 10_000
/** From this many unread bytes on, the watches of a call stop. */
const mostQueuedBytes = 4 * 1024 * 1024
/** Upstream: grpcOverheadBytes, by which an answer may exceed the size of a request. */
const overheadBytes = 512 * 1024

export function watchService(api: EtcdApi): GuardedService {
  return { streams: { Watch: (call: StreamCall<WatchRequest>, permit: Permit) => new WatchCall(api, call, permit).run() } }
}

type Permit = (request: Pick<CreateRequest, 'key' | 'rangeEnd'>) => void

interface Watch {
  readonly id: number
  readonly request: CreateRequest
  readonly stop: AbortController
  /** The first revision that was not delivered yet. */
  next: Revision
  /** All earlier changes were delivered, and later ones arrive as they are made. */
  isLive: boolean
  /** Stopped because the client reads too slowly. */
  isPaused: boolean
  timer: Timer | undefined
}

class WatchCall {
  readonly #api: EtcdApi
  readonly #call: StreamCall<WatchRequest>
  readonly #permit: Permit
  readonly #watches = new Map<number, Watch>()
  #nextId = 0
  #isFull = false

  constructor(api: EtcdApi, call: StreamCall<WatchRequest>, permit: Permit) {
    this.#api = api
    this.#call = call
    this.#permit = permit
  }

  /** Resolves when the client has closed its side and all watches have ended, or has left. */
  async run(): Promise<void> {
    const { signal } = this.#call
    const left = aborted(signal)
    this.#api.metrics.watchStreams.add(1)
    try {
      for await (const request of this.#call.requests) {
        this.#handle(request)
        // Each request has an answer: a client that does not read gets to send no more.
        if (this.#isFull) await this.#call.drained()
      }
      await left
    } finally {
      this.#api.metrics.watchStreams.add(-1)
      for (const watch of this.#watches.values()) this.#end(watch)
    }
  }

  #handle({ createRequest, cancelRequest, progressRequest }: WatchRequest): void {
    if (createRequest) this.#create(createRequest)
    else if (cancelRequest) this.#cancel(cancelRequest.watchId)
    // Without an answer while a watch catches up: the client would take later events for missing.
    else if (progressRequest && [...this.#watches.values()].every(({ isLive }) => isLive)) this.#send({ header: this.#api.header(), watchId: noWatch })
  }

  #create(request: CreateRequest): void {
    const refuse = (cancelReason: string) => this.#send({ header: this.#api.header(), watchId: noWatch, created: true, canceled: true, cancelReason })
    const denied = this.#denialOf(request)
    if (denied !== undefined) {
      refuse(denied)
      return
    }
    if (this.#watches.size >= maxWatches) {
      refuse('skiff: too many watches in one call')
      return
    }
    if (request.watchId !== 0 && this.#watches.has(request.watchId)) {
      refuse('mvcc: duplicate watch ID provided on the WatchStream')
      return
    }
    const newest = this.#api.store.latestRevision()
    const id = request.watchId === 0 ? this.#newId() : request.watchId
    const next = request.startRevision > 0 ? request.startRevision : newest + 1
    const watch: Watch = { id, request, stop: new AbortController(), next, isLive: next > newest, isPaused: false, timer: undefined }
    this.#watches.set(id, watch)
    this.#api.metrics.watchers.add(1)
    this.#send({ header: this.#api.header(newest), watchId: id, created: true })
    this.#run(watch)
    if (request.progressNotify) this.#notify(watch)
  }

  /** As etcd, a watch that was permitted continues when the permission is revoked. Undefined: it is permitted. */
  #denialOf({ key, rangeEnd }: CreateRequest): string | undefined {
    try {
      this.#permit({ key: key.length === 0 ? smallestKey : key, rangeEnd })
      return undefined
    } catch (error) {
      return messageOf(error)
    }
  }

  #newId(): number {
    while (this.#watches.has(this.#nextId)) this.#nextId++
    return this.#nextId++
  }

  #cancel(id: number): void {
    const watch = this.#watches.get(id)
    if (!watch) return
    this.#end(watch)
    this.#send({ header: this.#api.header(), watchId: id, canceled: true })
  }

  #end(watch: Watch): void {
    if (this.#watches.delete(watch.id)) this.#api.metrics.watchers.add(-1)
    watch.timer?.cancel()
    watch.stop.abort()
  }

  #run(watch: Watch): void {
    const { request, stop, next } = watch
    const options = {
      from: request.key.length === 0 ? '\0' : keyOf(request.key),
      to: endOf(request.rangeEnd),
      startRevision: next,
      previous: request.prevKv,
      onLive: () => {
        watch.isLive = true
      },
    }
    this.#api.store.watch(options, (batch) => this.#deliver(watch, batch), stop.signal).catch((error: unknown) => this.#fail(watch, error))
  }

  #deliver(watch: Watch, { revision, events }: StoreEventBatch): void {
    if (watch.isPaused) return
    if (this.#isFull) {
      this.#pause(watch)
      return
    }
    const { filters, fragment, prevKv } = watch.request
    const wanted = events.filter(({ type }) => !filters.includes(type === 'put' ? 'NOPUT' : 'NODELETE'))
    watch.next = revision + 1
    const header = this.#api.header(revision)
    this.#api.metrics.watchEvents.inc(wanted.length)
    const parts = fragment ? fragmentsOf(wanted, this.#api.maxRequestBytes + overheadBytes) : wanted.length > 0 ? [wanted] : []
    for (const [i, part] of parts.entries())
      this.#send({ header, watchId: watch.id, events: part.map((event) => eventMessage(event, prevKv)), fragment: i < parts.length - 1 })
    if (this.#isFull) this.#pause(watch)
  }

  #send(message: object): void {
    this.#call.send(message)
    if (this.#isFull || this.#call.queuedBytes < mostQueuedBytes) return
    this.#isFull = true
    void this.#call.drained().then(() => this.#resume())
  }

  #pause(watch: Watch): void {
    watch.isPaused = true
    watch.isLive = false
    watch.stop.abort()
  }

  /** Others have their turns between two watches: each reads the history that it has missed. */
  async #resume(): Promise<void> {
    this.#isFull = false
    for (const watch of [...this.#watches.values()]) {
      if (this.#isFull || this.#call.signal.aborted) return
      if (!watch.isPaused || this.#watches.get(watch.id) !== watch) continue
      const resumed: Watch = { ...watch, stop: new AbortController(), isPaused: false }
      this.#watches.set(watch.id, resumed)
      this.#run(resumed)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  #fail(watch: Watch, error: unknown): void {
    if (this.#watches.get(watch.id) !== watch) return
    this.#end(watch)
    const isCompacted = isStoreError(error, 'compacted')
    const cancelReason = refusal(isCompacted ? 'compacted' : 'closed').message
    const compactRevision = isCompacted ? (error.revision ?? 0) : 0
    this.#send({ header: this.#api.header(), watchId: watch.id, canceled: true, cancelReason, compactRevision })
  }

  /** Upstream: a watch without events for this long gets a notification. */
  #notify({ id }: Watch): void {
    const watch = this.#watches.get(id)
    if (!watch) return
    const before = watch.next
    watch.timer = this.#api.clock.timer(this.#api.progressNotifyMs, () => {
      const now = this.#watches.get(id)
      if (now?.isLive && now.next === before) this.#send({ header: this.#api.header(), watchId: id })
      this.#notify(watch)
    })
  }
}

function eventMessage({ type, kv, previous }: StoreEvent, withPrevious: boolean): object {
  return { type: type === 'put' ? 'PUT' : 'DELETE', kv: keyValueMessage(kv), ...(withPrevious && previous ? { prevKv: keyValueMessage(previous) } : {}) }
}

function fragmentsOf(events: readonly StoreEvent[], maxBytes: number): StoreEvent[][] {
  const parts: StoreEvent[][] = []
  let bytes = 0
  for (const event of events) {
    const size = event.kv.key.length + event.kv.value.length + (event.previous?.value.length ?? 0)
    const last = parts.at(-1)
    if (last && bytes + size <= maxBytes) last.push(event)
    else parts.push([event])
    bytes = last && bytes + size <= maxBytes ? bytes + size : size
  }
  return parts
}
