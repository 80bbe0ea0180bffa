/**
 * The allocated node ports in the store (L3). A change is a compare-and-swap, so that all API servers over one store agree. Changes that arrive
 * while a write is under way share the next one, and the last known state is kept, so that most changes cost one write and no read.
 * Upstream: pkg/registry/core/service/allocator/storage/storage.go (v1.36), which reads before each write and writes one change at a time.
 */
import { internalError, StatusError } from '#api/machinery/status'
import type { Store } from '#store/store'
import { encodeStored } from '../../core/watch/cacheEntry.ts'
import { UnreadableValue } from '../../core/watch/unreadableValue.ts'
import type { StorageSettings } from '../../registry/storageSettings.ts'
import type { StoredValues } from '../../registry/storedValues.ts'
import { storeFailure } from '../../registry/storeFailure.ts'
import { formatPortRange, PortBitmap, type PortRange, parsePortRange } from './portBitmap.ts'
import { decodeRangeAllocation, rangeAllocationObject, rangeAllocationValues } from './rangeAllocation.ts'

export const nodePortsKey = '/registry/ranges/servicenodeports'
const resource = 'servicenodeportallocations'
/** Each failed try means that another server's write succeeded. */
const maxTries = 100

/** A stored allocation, and the revision that a write must still find; 0: there is none. */
export interface StoredRange {
  readonly revision: number
  /** They have the range that they were stored with. */
  readonly ports?: PortBitmap | undefined
  /** The ports would be stored differently now: encrypted with another key, or in another media type. */
  readonly isStale?: boolean | undefined
  /** Why the stored value cannot be decoded: its key is missing, or it is no allocated range. */
  readonly unreadable?: Error | undefined
}

/** Changes the bitmap and returns true, or returns false to drop its changes. It may run several times, each time on a newer state. */
export type PortChange = (ports: PortBitmap) => boolean

interface Waiting {
  readonly change: PortChange
  resolve(): void
  reject(error: unknown): void
}

export class StoredPorts {
  readonly range: PortRange
  readonly #store: Store
  readonly #values: StoredValues
  #known: { readonly revision: number; readonly ports: PortBitmap } | undefined
  #waiting: Waiting[] = []
  #working = false

  constructor(store: Store, range: PortRange, settings: StorageSettings = {}) {
    this.#store = store
    this.#values = rangeAllocationValues(resource, settings)
    this.range = range
  }

  /** Resolves when the change is stored, or has returned false on the newest state. @throws StatusError; then the change may be stored all the same */
  update(change: PortChange): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ change, resolve, reject })
      if (!this.#working) void this.#work()
    })
  }

  /** The state as this server knows it, for dry runs. It belongs to the caller. */
  async view(): Promise<PortBitmap> {
    const { ports } = this.#known ?? (await this.#read())
    return ports.copy()
  }

  /** The newest state, whatever its range. @throws StatusError */
  async readStored(): Promise<StoredRange> {
    const { kvs } = await this.#store.range(nodePortsKey).catch(rethrow)
    const [kv] = kvs
    if (!kv) return { revision: 0 }
    const revision = kv.modRevision
    const value = await this.#values.read(nodePortsKey, kv.value)
    if (value instanceof UnreadableValue) return { revision, unreadable: value.error }
    try {
      const { range, data } = decodeRangeAllocation(value)
      return { revision, ports: PortBitmap.of(parsePortRange(range), data), isStale: await this.#values.isStale(nodePortsKey, kv.value) }
    } catch (error) {
      return { revision, unreadable: error as Error }
    }
  }

  /** Replaces the state that was read at `revision`. False: another write came first. @throws StatusError */
  async replace(revision: number, ports: PortBitmap): Promise<boolean> {
    this.#known = undefined
    return (await this.#write(revision, ports)) !== undefined
  }

  async #work(): Promise<void> {
    this.#working = true
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0)
      try {
        await this.#apply(batch)
        for (const one of batch) one.resolve()
      } catch (error) {
        this.#known = undefined
        for (const one of batch) one.reject(error)
      }
    }
    this.#working = false
  }

  async #apply(batch: readonly Waiting[]): Promise<void> {
    let isFresh = this.#known === undefined
    for (let attempt = 1; attempt <= maxTries; attempt++) {
      const known = this.#known ?? (await this.#read())
      let { ports } = known
      let refused = false
      for (const { change } of batch) {
        const changed = ports.copy()
        if (change(changed)) ports = changed
        else refused = true
      }
      // Another server may have released what a change did not get.
      if (refused && !isFresh) {
        this.#known = undefined
        isFresh = true
        continue
      }
      if (ports.equals(known.ports)) return
      const revision = await this.#write(known.revision, ports)
      this.#known = revision === undefined ? undefined : { revision, ports }
      if (revision !== undefined) return
      isFresh = true
    }
    throw new StatusError('Conflict', 'the allocated node ports changed too often; please try again')
  }

  async #read(): Promise<{ readonly revision: number; readonly ports: PortBitmap }> {
    const { revision, ports, unreadable } = await this.readStored()
    if (unreadable) throw unusable(`cannot read the allocated node ports under ${nodePortsKey}: ${unreadable.message}`, unreadable)
    if (!ports) throw unusable(`cannot allocate resources of type ${resource} at this time`)
    if (formatPortRange(ports.range) !== formatPortRange(this.range)) throw unusable('the provided range does not match the current range')
    return { revision, ports }
  }

  /** The new revision; undefined when another write came first. */
  async #write(revision: number, ports: PortBitmap): Promise<number | undefined> {
    const object = rangeAllocationObject({ range: formatPortRange(this.range), data: ports.toBytes() })
    const value = this.#values.write(nodePortsKey, encodeStored(object), object)
    const result = await this.#store
      .transact({ compare: [{ key: nodePortsKey, target: 'mod', op: '=', value: revision }], success: [{ type: 'put', key: nodePortsKey, value }] })
      .catch(rethrow)
    return result.succeeded ? result.revision : undefined
  }
}

function unusable(why: string, cause?: Error): StatusError {
  return internalError(new Error(why, { cause }))
}

function rethrow(error: unknown): never {
  throw storeFailure(error)
}
