/**
 * The allocations of one write (L3): new addresses and ports are taken before the write and released if it fails; unused ones are released
 * once the write is stored.
 * Upstream: pkg/registry/core/service/storage/alloc.go (v1.36).
 */
import type { Service, ServicePort } from '#api/gen/types/core.v1'
import { type FieldError, FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import { ipFamily } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import { internalError } from '#api/machinery/status'
import type { Reservation } from '../../registry/storedResource.ts'
import { initFamilies } from './families.ts'
import type { IpAllocator } from './ipAllocator.ts'
import type { IpFamily } from './ipRange.ts'
import type { PortPool } from './portPool.ts'
import { clusterIpsOf, needsClusterIp, needsHealthCheckPort, needsNodePorts, nodePortsOf, serviceRef } from './serviceFields.ts'

export interface AllocationRequest {
  readonly addresses: IpAllocator
  readonly ports: PortPool
  readonly service: Service
  readonly old?: Frozen<Service> | undefined
  readonly dryRun: boolean
}

const specPath = FieldPath.of('spec')

export class Allocation implements Reservation {
  readonly #request: AllocationRequest
  readonly #reservedPorts: number[] = []
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
      if (needsNodePorts(service)) this.#nodePorts()
      if (needsHealthCheckPort(service)) this.#healthCheckPort()
      if (this.#errors.length > 0) throw invalid({ group: '', kind: 'Service' }, service.metadata.name ?? '', this.#errors)
      return this
    } catch (error) {
      await this.settle(false)
      throw error
    }
  }

  async settle(stored: boolean): Promise<void> {
    const { ports, addresses, service, old } = this.#request
    // A stored port is in the cache by now, which counts it.
    for (const port of this.#reservedPorts.splice(0)) ports.release(port)
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

  /** One service port has one node port, whatever its protocols. */
  #nodePorts(): void {
    const { service, old } = this.#request
    const before = old ? nodePortsOf(old) : new Set<number>()
    const ports = service.spec.ports ?? []
    const byPort = new Map<number, number>()
    const mine = new Set<number>()
    for (const [i, port] of ports.entries()) {
      const path = specPath.child('ports').index(i).child('nodePort')
      port.nodePort ||= byPort.get(port.port) ?? askedElsewhere(ports, port)
      if (!port.nodePort) port.nodePort = this.#nextPort()
      else if (!mine.has(port.nodePort) && !before.has(port.nodePort)) this.#claimPort(port.nodePort, path)
      mine.add(port.nodePort)
      byPort.set(port.port, port.nodePort)
    }
  }

  #healthCheckPort(): void {
    const { service, old } = this.#request
    const { spec } = service
    if (!spec.healthCheckNodePort) spec.healthCheckNodePort = this.#nextPort()
    else if (spec.healthCheckNodePort !== old?.spec?.healthCheckNodePort) this.#claimPort(spec.healthCheckNodePort, specPath.child('healthCheckNodePort'))
  }

  #nextPort(): number {
    const port = this.#request.ports.next()
    if (port === undefined) throw internalError(new Error('failed to allocate a nodePort: range is full'))
    this.#reservedPorts.push(port)
    return port
  }

  #claimPort(port: number, path: FieldPath): void {
    const { ports } = this.#request
    const { first, size } = ports.range
    const claim = ports.check(port)
    if (claim === 'taken') this.#errors.push(fieldError.invalid(path, port, 'provided port is already allocated'))
    else if (claim === 'outside') {
      const why = `provided port is not in the valid range. The range of valid ports is ${first}-${first + size - 1}`
      this.#errors.push(fieldError.invalid(path, port, why))
    } else {
      ports.reserve(port)
      this.#reservedPorts.push(port)
    }
  }
}

/** The node port that a later entry for the same port asks for. */
function askedElsewhere(ports: readonly ServicePort[], { port }: ServicePort): number | undefined {
  return ports.find((other) => other.port === port && other.nodePort)?.nodePort
}
