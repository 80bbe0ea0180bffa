/**
 * The store on an etcd cluster (L2), for servers of etcd 3.4 to 3.7: raft, durability and history are etcd's. Values and revisions pass unchanged.
 * Upstream: apiserver/pkg/storage/etcd3.
 */
import { abortScope, deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { type Logger, noLog } from '#base/log'
import { unlessAborted } from '#base/orAborted'
import type { Random } from '#base/random'
import type { GrpcTls } from '#grpc/grpcSession'
import type { LeaseId, Revision, Store, StoreEventBatch, StoreSize, StoreWatchOptions, Transaction, TransactionResult } from '../../store.ts'
import { isStoreError, storeError } from '../../storeError.ts'
import { createEndpoints, type Endpoints, type EtcdCall, firstAnswer } from './endpoints.ts'
import { storeErrorOf } from './errors.ts'
import { OtherClusterError } from './membership.ts'
import {
  type EtcdHeader,
  type EtcdRangeResponse,
  type EtcdTransactionResponse,
  type KeyMapping,
  keyMapping,
  rangeRequestOf,
  rangeResultOf,
  type StatusResponse,
  transactionRequestOf,
  transactionResultOf,
} from './operations.ts'
import { EtcdWatch } from './watch.ts'

export interface EtcdStoreOptions {
  /** URLs of members, as in --etcd-servers. */
  readonly endpoints: readonly string[]
  readonly tls?: GrpcTls | undefined
  /** As --etcd-prefix. Default: `/registry`. */
  readonly prefix?: string | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log?: Logger | undefined
}

/** etcd takes requests of 1.5 MiB (--max-request-bytes); the rest is for keys and comparisons. */
const maxValueBytes = 1.5 * 1024 * 1024 - 16 * 1024
/** Ids of leases are made here, since those that etcd makes have 63 bits. */
const leaseIdBits = 2 ** 26

/** A write waits at most this long for watches that are being opened. */
const watchCreationMs = 2_000

/** @throws Error when no endpoint answers, or they belong to different clusters; the message names them */
export async function openEtcdStore(options: EtcdStoreOptions): Promise<Store> {
  const endpoints = createEndpoints({ urls: options.endpoints, tls: options.tls, clock: options.clock })
  const closing = new AbortController()
  try {
    await endpoints.connectAll(closing.signal)
    const { version } = await endpoints.call<StatusResponse>({ method: 'Maintenance.Status', request: {}, isRepeatable: true, signal: closing.signal })
    options.log?.info('Connected to etcd', { version, endpoints: options.endpoints.join(',') })
    if (!endpoints.hasSoundProgress()) options.log?.warn('A member of etcd reports progress before events: Skiff watches all of its keys instead', { version })
    return new EtcdStore(endpoints, closing, options)
  } catch (error) {
    endpoints.close()
    if (error instanceof OtherClusterError) throw error
    throw new Error(`etcd does not answer at ${options.endpoints.join(', ')}: ${(error as Error).message}`, { cause: error })
  }
}

class EtcdStore implements Store {
  readonly maxValueBytes = maxValueBytes
  readonly #endpoints: Endpoints
  readonly #closing: AbortController
  readonly #keys: KeyMapping
  readonly #clock: Clock
  readonly #random: Random
  readonly #log: Logger
  readonly #watches = new Set<EtcdWatch>()
  /** Registrations that writes wait for: of watches from now on. */
  readonly #creations = new Set<Promise<void>>()
  /** The newest revision that a reader waits for. */
  #confirmed: Revision = 0
  /** The reading that has not begun yet: it answers everyone who asks before it begins. */
  #nextRevision: Promise<Revision> | undefined
  #reading: Promise<unknown> = Promise.resolve()

  constructor(endpoints: Endpoints, closing: AbortController, { prefix = '/registry', clock, random, log = noLog }: EtcdStoreOptions) {
    this.#endpoints = endpoints
    this.#closing = closing
    this.#keys = keyMapping(prefix)
    this.#clock = clock
    this.#random = random
    this.#log = log
  }

  async #call<Response>(call: Omit<EtcdCall, 'signal'>): Promise<Response> {
    if (this.#closing.signal.aborted) throw storeError('closed')
    try {
      return await this.#endpoints.call<Response>({ ...call, signal: this.#closing.signal })
    } catch (error) {
      if (this.#closing.signal.aborted) throw storeError('closed')
      throw storeErrorOf(error, !call.isRepeatable)
    }
  }

  async range(...[from, to, options]: Parameters<Store['range']>): ReturnType<Store['range']> {
    const request = rangeRequestOf(this.#keys, from, to, options)
    return rangeResultOf(this.#keys, await this.#call<EtcdRangeResponse>({ method: 'KV.Range', request, isRepeatable: true }))
  }

  async transact(transaction: Transaction): Promise<TransactionResult> {
    const operations = [...transaction.success, ...(transaction.failure ?? [])]
    if (operations.some((op) => op.type === 'put' && op.value.length > maxValueBytes)) throw storeError('tooLarge')
    if (this.#creations.size > 0) await this.#watchesCreated()
    const request = transactionRequestOf(this.#keys, transaction)
    const isRepeatable = operations.every((op) => op.type === 'range')
    return transactionResultOf(this.#keys, await this.#call<EtcdTransactionResponse>({ method: 'KV.Txn', request, isRepeatable }))
  }

  /**
   * A watch from now on sees what is written after its beginning: writes wait until the server has registered it. A watch that names its first revision
   * misses nothing, and a server that registers none in time keeps no write back.
   */
  async #watchesCreated(): Promise<void> {
    using limit = deadlineScope({ clock: this.#clock, ms: watchCreationMs }, this.#closing.signal)
    await unlessAborted(Promise.all(this.#creations), limit.signal)
  }

  /** A linearizable read of nothing. Requests that arrive while one is on its way share the next. */
  latestRevision(): Promise<Revision> {
    this.#nextRevision ??= this.#reading.then(async () => {
      this.#nextRevision = undefined
      const reading = this.range('\0', undefined, { countOnly: true })
      this.#reading = reading.catch(() => undefined)
      const { revision } = await reading
      this.#confirmed = Math.max(this.#confirmed, revision)
      for (const watch of this.#watches) watch.confirm(revision)
      return revision
    })
    return this.#nextRevision
  }

  async watch(options: StoreWatchOptions, onBatch: (batch: StoreEventBatch) => void, signal: AbortSignal): Promise<void> {
    if (this.#closing.signal.aborted) throw storeError('closed')
    const watch = new EtcdWatch({ endpoints: this.#endpoints, keys: this.#keys, clock: this.#clock }, options, onBatch)
    using scope = abortScope(signal, this.#closing.signal)
    this.#watches.add(watch)
    if (options.startRevision === undefined) {
      this.#creations.add(watch.created)
      void watch.created.then(() => this.#creations.delete(watch.created))
    }
    // Readers may wait for a revision that the watch before this one has not reached.
    watch.confirm(this.#confirmed)
    try {
      await watch.run(scope.signal)
    } catch (error) {
      if (signal.aborted) return
      if (!isStoreError(error)) this.#log.info('A watch of etcd broke', { error: (error as Error).message })
      throw this.#closing.signal.aborted ? storeError('closed') : storeErrorOf(error, false)
    } finally {
      this.#watches.delete(watch)
    }
    if (!signal.aborted) throw storeError('closed')
  }

  async grantLease(ttlSeconds: number): Promise<number> {
    const id = 1 + this.#random.int(leaseIdBits) * leaseIdBits + this.#random.int(leaseIdBits)
    const { error } = await this.#call<{ error: string }>({ method: 'Lease.LeaseGrant', request: { ttl: ttlSeconds, id }, isRepeatable: false })
    if (error !== '') throw new Error(`etcd granted no lease: ${error}`)
    return id
  }

  async keepLeaseAlive(id: LeaseId): Promise<{ ttlSeconds: number }> {
    if (this.#closing.signal.aborted) throw storeError('closed')
    const answer = firstAnswer<{ ttl: number }>(this.#endpoints, 'Lease.LeaseKeepAlive', { id }, this.#clock, this.#closing.signal)
    const { ttl } = await answer.catch((error) => {
      throw storeErrorOf(error, false)
    })
    if (ttl <= 0) throw storeError('leaseNotFound')
    return { ttlSeconds: ttl }
  }

  async revokeLease(id: LeaseId): Promise<void> {
    await this.#call<{ header: EtcdHeader }>({ method: 'Lease.LeaseRevoke', request: { id }, isRepeatable: false })
  }

  async compact(revision: Revision): Promise<void> {
    await this.#call<object>({ method: 'KV.Compact', request: { revision }, isRepeatable: false })
  }

  async size(): Promise<StoreSize> {
    const status = await this.#call<StatusResponse>({ method: 'Maintenance.Status', request: {}, isRepeatable: true })
    const { header, dbSize, dbSizeInUse, leader, raftTerm: term, raftIndex: index, raftAppliedIndex: appliedIndex } = status
    const raft = { isLeader: leader !== 0 && header?.memberId === leader, hasLeader: leader !== 0, term, index, appliedIndex }
    return { totalBytes: dbSize, liveBytes: dbSizeInUse, raft }
  }

  async close(): Promise<void> {
    this.#closing.abort(storeError('closed'))
    this.#endpoints.close()
  }
}
