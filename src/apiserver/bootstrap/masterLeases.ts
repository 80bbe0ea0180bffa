/**
 * The addresses of the API servers that live (L3): one key each, which the store deletes when its server has not renewed it for some seconds.
 * Renewing writes nothing, so that a server costs the store nothing while nothing changes.
 * Upstream: storageLeases of pkg/controlplane/reconcilers/lease.go (v1.36), which writes the key at each renewal.
 */
import type { Store, StoreError } from '#store/store'

export const masterLeasesPrefix = '/registry/masterleases/'
const ttlSeconds = 15
/** More servers than any cluster has. */
const maxServers = 1000

export class MasterLeases {
  readonly #store: Store
  #own: { readonly address: string; readonly lease: number } | undefined

  constructor(store: Store) {
    this.#store = store
  }

  /** Addresses of all live servers, sorted. */
  async list(): Promise<readonly string[]> {
    const end = `${masterLeasesPrefix.slice(0, -1)}0`
    const { kvs } = await this.#store.range(masterLeasesPrefix, end, { keysOnly: true, limit: maxServers })
    return kvs.map(({ key }) => key.slice(masterLeasesPrefix.length)).sort()
  }

  /** Announces this server, or keeps it announced. */
  async renew(address: string): Promise<void> {
    if (this.#own && this.#own.address !== address) await this.remove(this.#own.address)
    if (this.#own && (await this.#isKept(this.#own.lease))) return
    const lease = await this.#store.grantLease(ttlSeconds)
    await this.#store.transact({ compare: [], success: [{ type: 'put', key: masterLeasesPrefix + address, value: encoded(address), lease }] })
    this.#own = { address, lease }
  }

  /** False when the server was not announced. */
  async remove(address: string): Promise<boolean> {
    this.#own = undefined
    const { responses } = await this.#store.transact({ compare: [], success: [{ type: 'delete', from: masterLeasesPrefix + address }] })
    return responses[0]?.type === 'delete' && responses[0].deleted > 0
  }

  /** Someone may have deleted the key. */
  async #isKept(lease: number): Promise<boolean> {
    try {
      await this.#store.keepLeaseAlive(lease)
    } catch (error) {
      if ((error as StoreError).code === 'leaseNotFound') return false
      throw error
    }
    const { kvs } = await this.#store.range(masterLeasesPrefix + (this.#own?.address ?? ''), undefined, { keysOnly: true })
    return kvs[0]?.lease === lease
  }
}

/** Upstream's servers read the address from the value. */
function encoded(address: string): Uint8Array {
  return Buffer.from(JSON.stringify({ kind: 'Endpoints', apiVersion: 'v1', metadata: {}, subsets: [{ addresses: [{ ip: address }] }] }))
}
