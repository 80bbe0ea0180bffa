/**
 * Keeps the Endpoints and the EndpointSlice of the `kubernetes` service (L3): this server's address is in them while it serves, those of the others
 * while they live. Nothing is written while they are right.
 * Upstream: pkg/controlplane/reconcilers, pkg/controlplane/controller/kubernetesservice (v1.36).
 */
import type { Endpoints } from '#api/gen/types/core.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { ownValue } from '#base/bareMap'
import { orAborted } from '#base/orAborted'
import type { ApiRequest, Transport } from '#client/transport'
import type { ObjectReader } from '../core/objectReader.ts'
import { deepEqual } from '../core/sameObject.ts'
import { addressesOf, endpointPort, withOwnAddress } from './endpointAddresses.ts'
import type { MasterLeases } from './masterLeases.ts'
import { type Advertised, kubernetesEndpointSlice, kubernetesEndpoints } from './objects.ts'

/** How servers learn of each other: by leases in the store, by their number, or not at all: then the objects are left alone. */
export type EndpointReconcilerType = 'lease' | 'master-count' | 'none'

export interface EndpointReconcilerConfig {
  readonly type: EndpointReconcilerType
  /** For `master-count`. */
  readonly serverCount: number
  /** Undefined: not known, or not to be published. */
  advertised(): Advertised | undefined
}

export interface EndpointReconcilerDeps {
  readonly reader: ObjectReader
  readonly transport: Transport
  readonly leases: MasterLeases
}

type OwnedField = 'subsets' | 'endpoints' | 'ports'
/** Both kinds, as far as servers write them. */
type Owned = KubeObject & { readonly [field in OwnedField]?: unknown } & { readonly addressType?: string }

const endpointsPath = '/api/v1/namespaces/default/endpoints'
const slicesPath = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
/** Another server may write at the same time. */
const maxTries = 5

export class EndpointReconciler {
  readonly #deps: EndpointReconcilerDeps
  readonly #config: EndpointReconcilerConfig
  #last: Promise<unknown> = Promise.resolve()
  #isStopped = false
  /** The address that the objects have from this server. */
  #published: Advertised | undefined

  constructor(deps: EndpointReconcilerDeps, config: EndpointReconcilerConfig) {
    this.#deps = deps
    this.#config = config
  }

  /** Removes what a server with this address has left behind when it crashed, if other servers live. */
  removeStale(signal: AbortSignal): Promise<void> {
    return this.#inTurn(signal, async () => {
      const own = this.#config.advertised()
      if (this.#config.type !== 'lease' || !own) return
      const { leases } = this.#deps
      const all = await leases.list()
      if (all.length < 2 || !all.includes(own.address)) return
      await leases.remove(own.address)
      await this.#write(await leases.list(), own, signal)
    })
  }

  /** Publishes this server, and removes those that are gone. Call it regularly. */
  reconcile(signal: AbortSignal): Promise<void> {
    return this.#inTurn(signal, async () => {
      const own = this.#config.advertised()
      if (this.#isStopped || this.#config.type === 'none' || !own) return
      const addresses = await this.#live(own)
      if (addresses.length === 0) throw new Error('the store lists no API server, although this one has just been announced')
      await this.#write(addresses, own, signal)
      this.#published = own
    })
  }

  /** Takes this server out; it is not published again. */
  stop(signal: AbortSignal): Promise<void> {
    this.#isStopped = true
    return this.#inTurn(signal, async () => {
      const own = this.#published
      if (!own) return
      await this.#write(await this.#others(own), own, signal)
    })
  }

  async #live({ address }: Advertised): Promise<readonly string[]> {
    if (this.#config.type === 'master-count') return withOwnAddress(addressesOf(this.#endpoints()), address, this.#config.serverCount)
    await this.#deps.leases.renew(address)
    return this.#deps.leases.list()
  }

  async #others({ address }: Advertised): Promise<readonly string[]> {
    if (this.#config.type === 'master-count') return addressesOf(this.#endpoints()).filter((one) => one !== address)
    await this.#deps.leases.remove(address)
    return this.#deps.leases.list()
  }

  async #write(addresses: readonly string[], own: Advertised, signal: AbortSignal): Promise<void> {
    const moved = this.#published?.address !== own.address || this.#published.port !== own.port
    for (let attempt = 1; ; attempt++) {
      try {
        const endpoints = this.#endpoints()
        const port = endpointPort(endpoints, own.port, moved || addresses.length < 2)
        await this.#ensure(endpointsPath, endpoints, kubernetesEndpoints(addresses, port), ['subsets'], signal)
        const slice = this.#deps.reader.get<EndpointSlice>({ group: 'discovery.k8s.io', resource: 'endpointslices' }, 'default', 'kubernetes')
        await this.#ensure(slicesPath, slice, kubernetesEndpointSlice(addresses, port), ['endpoints', 'ports'], signal)
        return
      } catch (error) {
        const lostRace = (['Conflict', 'AlreadyExists', 'NotFound'] as const).some((reason) => isStatus(error, reason))
        if (!lostRace || attempt === maxTries) throw error
        // A read of the store: the cache has the other write afterwards.
        await this.#deps.transport.request({ method: 'GET', path: endpointsPath }, signal)
      }
    }
  }

  /** Creates the object, or restores its fields and labels. */
  async #ensure(path: string, found: Frozen<Owned> | undefined, wanted: Owned, fields: readonly OwnedField[], signal: AbortSignal): Promise<void> {
    const request = (one: ApiRequest) => this.#deps.transport.request(one, signal)
    if (!found) {
      await request({ method: 'POST', path, body: wanted })
      return
    }
    const at = `${path}/${wanted.metadata.name}`
    if (found.addressType !== wanted.addressType) {
      // The type of a slice's addresses cannot change.
      await request({ method: 'DELETE', path: at })
      await request({ method: 'POST', path, body: wanted })
      return
    }
    const hasLabels = Object.entries(wanted.metadata.labels ?? {}).every(([name, value]) => ownValue(found.metadata.labels, name) === value)
    if (hasLabels && fields.every((field) => deepEqual(found[field] ?? [], wanted[field] ?? []))) return
    const { resourceVersion } = found.metadata
    const restored = Object.fromEntries(fields.map((field) => [field, wanted[field]]))
    const body = { metadata: { resourceVersion, labels: wanted.metadata.labels }, ...restored }
    await request({ method: 'PATCH', path: at, contentType: 'application/merge-patch+json', body })
  }

  #endpoints(): Frozen<Endpoints> | undefined {
    return this.#deps.reader.get<Endpoints>({ group: '', resource: 'endpoints' }, 'default', 'kubernetes')
  }

  /** One after the other: a renewal must not follow the removal. @throws the signal's reason when it aborts first: the store may never answer */
  #inTurn(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => undefined)
    return orAborted(result, signal)
  }
}
