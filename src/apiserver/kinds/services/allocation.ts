/**
 * The allocations of one write (L3): new addresses and ports are taken before the write and released if it fails; unused ones are released
 * once the write is stored.
 * Upstream: pkg/registry/core/service/storage/alloc.go (v1.36).
 */
import type { Service } from '#api/gen/types/core.v1'
import { type FieldError, FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import { ipFamily } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import type { Reservation } from '../../registry/storedResource.ts'
import { initFamilies } from './families.ts'
import type { IpAllocator } from './ipAllocator.ts'
import type { IpFamily } from './ipRange.ts'
import type { NodePortAllocator } from './nodePortAllocator.ts'
import type { NodePortPlan } from './nodePortPlan.ts'
import { clusterIpsOf, needsClusterIp, serviceRef } from './serviceFields.ts'

export interface AllocationRequest {
  readonly addresses: IpAllocator
  readonly nodePorts: NodePortAllocator
  readonly service: Service
  readonly old?: Frozen<Service> | undefined
  readonly dryRun: boolean
}

const specPath = FieldPath.of('spec')

export class Allocation implements Reservation {
  readonly #request: AllocationRequest
  #ports: Pick<NodePortPlan, 'taken' | 'released'> = { taken: [], released: [] }
  readonly #takenIps: string[] = []
  readonly #errors: FieldError[] = []

  constructor(request: AllocationRequest) {
    this.#request = request
  }

  /** @throws Status Invalid when something asked for cannot be had, InternalError when a range is full. */
  async run(): Promise<Reservation> {
    const { service, old, addresses } = this.#request
    try {
      this.#errors.push(...initFamilies(service, old, addresses.families))
      if (this.#errors.length === 0 && needsClusterIp(service)) await this.#clusterIps()
      else if (service.spec.clusterIP === 'None') service.spec.clusterIPs ??= ['None']
      if (this.#errors.length > 0) throw invalid({ group: '', kind: 'Service' }, service.metadata.name ?? '', this.#errors)
      await this.#nodePorts()
      return this
    } catch (error) {
      await this.settle(false)
      throw error
    }
  }

  async settle(stored: boolean): Promise<void> {
    const { nodePorts, addresses, service, old } = this.#request
    await nodePorts.release(stored ? this.#ports.released : this.#ports.taken)
    const kept = clusterIpsOf(service)
    const unused = stored ? (old ? clusterIpsOf(old) : []).filter((ip) => !kept.includes(ip)) : this.#takenIps
    for (const ip of unused) await addresses.release(ip, serviceRef(service))
  }

  async #clusterIps(): Promise<void> {
    const { service, old, addresses, dryRun } = this.#request
    const { spec } = service
    const asked = clusterIpsOf(service)
    const before = old ? clusterIpsOf(old) : []
    const got: string[] = []
    for (const [i, family] of (spec.ipFamilies ?? []).entries()) {
      const ip = asked[i]
      if (ip === undefined) got.push(await this.#nextIp(family as IpFamily))
      else {
        got.push(ip)
        // Validation reports a text that is not an address.
        if (before.includes(ip) || ipFamily(ip) === undefined) continue
        const fault = await addresses.allocate(ip, serviceRef(service), dryRun)
        if (fault) this.#errors.push(fieldError.invalid(specPath.child('clusterIPs'), [...asked], `failed to allocate IP ${ip}: ${fault}`))
        else if (!dryRun) this.#takenIps.push(ip)
      }
    }
    spec.clusterIPs = [...got, ...asked.slice(got.length)]
    if (got[0] !== undefined) spec.clusterIP = got[0]
  }

  async #nextIp(family: IpFamily): Promise<string> {
    const { service, addresses, dryRun } = this.#request
    const ip = await addresses.allocateNext(family, serviceRef(service), dryRun)
    if (!dryRun) this.#takenIps.push(ip)
    return ip
  }

  async #nodePorts(): Promise<void> {
    const { service, old, nodePorts, dryRun } = this.#request
    const { spec } = service
    const plan = await nodePorts.allocate(service as Frozen<Service>, old, dryRun)
    if (!dryRun) this.#ports = plan
    for (const [index, port] of (spec.ports ?? []).entries()) {
      const nodePort = plan.nodePorts[index]
      if (nodePort && port.nodePort !== nodePort) port.nodePort = nodePort
    }
    if (plan.healthCheckNodePort) spec.healthCheckNodePort = plan.healthCheckNodePort
  }
}
