/**
 * Gives services their cluster IPs and node ports, keeps them across updates and takes them back (L3).
 * Upstream: pkg/registry/core/service/storage/{alloc,storage}.go (v1.36).
 */
import type { Service } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Random } from '#base/random'
import type { Store } from '#store/store'
import type { KindStorage } from '../../registry/kindStorage.ts'
import type { StorageSettings } from '../../registry/storageSettings.ts'
import { nothingReserved } from '../../registry/storedResource.ts'
import { Allocation } from './allocation.ts'
import { ipAddressRepair } from './ipAddressRepair.ts'
import { IpAllocator } from './ipAllocator.ts'
import { NodePortAllocator } from './nodePortAllocator.ts'
import { nodePortRepair } from './nodePortRepair.ts'
import { clusterIpsOf, nodePortsOf, serviceRef } from './serviceFields.ts'
import { StoredPorts } from './storedPorts.ts'

export interface ServiceNetwork {
  /** e.g. 10.96.0.0/16, or one range of each family with a comma between: the first is the default family. */
  readonly cidr: string
  /** First and last node port. */
  readonly nodePorts: readonly [number, number]
}

export const defaultServiceNetwork: ServiceNetwork = { cidr: '10.96.0.0/16', nodePorts: [30000, 32767] }

export interface ServiceStorageDeps extends StorageSettings {
  readonly store: Store
  readonly random: Random
  readonly network: ServiceNetwork
}

export function serviceStorage({ store, random, network, ...settings }: ServiceStorageDeps): KindStorage {
  const [firstPort, lastPort] = network.nodePorts
  const addresses = new IpAllocator(network.cidr, random)
  const stored = new StoredPorts(store, { first: firstPort, size: lastPort - firstPort + 1 }, settings)
  const nodePorts = new NodePortAllocator(stored, random)
  return {
    hooks: {
      beforeCreate: (object, dryRun) => new Allocation({ addresses, nodePorts, dryRun, service: object as unknown as Service }).run(),
      async beforeUpdate(object, before, dryRun) {
        const service = object as unknown as Service
        const old = before as Frozen<Service>
        // A write of the status takes the spec over as it was: it allocates nothing.
        return service.spec === old.spec ? nothingReserved : new Allocation({ addresses, nodePorts, dryRun, service, old }).run()
      },
      async afterDelete(object) {
        const service = object as Frozen<Service>
        for (const ip of clusterIpsOf(service)) await addresses.release(ip, serviceRef(service))
        await nodePorts.release(nodePortsOf(service))
      },
    },
    follow: (reader) => addresses.follow(reader),
    connect: (transport) => addresses.connect(transport),
    works: (deps) => [nodePortRepair(stored, deps), ipAddressRepair(deps)],
  }
}
