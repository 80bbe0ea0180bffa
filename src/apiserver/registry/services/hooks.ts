/**
 * Gives services their cluster IPs and node ports, and keeps them across updates (L3).
 * Upstream: pkg/registry/core/service/storage/alloc.go.
 */
import type { Service, ServicePort } from '#api/gen/types/core.v1'
import { type FieldError, FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { internalError } from '#api/machinery/status'
import type { Random } from '#base/random'
import type { ObjectReader } from '../../admission/admission.ts'
import type { Reservation, StorageHooks } from '../storedResource.ts'
import { formatIpv4, Pool, parseIpv4, rangeOfCidr } from './addresses.ts'

export interface ServiceNetwork {
  /** e.g. 10.96.0.0/16. */
  readonly cidr: string
  /** First and last node port. */
  readonly nodePorts: readonly [number, number]
}

export const defaultServiceNetwork: ServiceNetwork = { cidr: '10.96.0.0/16', nodePorts: [30000, 32767] }

export interface ServiceHooks {
  readonly hooks: StorageHooks
  /** Starts counting what the cache holds; call once, before the caches are filled. */
  follow(reader: ObjectReader): void
}

export function serviceHooks(network: ServiceNetwork, random: Random): ServiceHooks {
  const [firstPort, lastPort] = network.nodePorts
  const addresses = new Pool(rangeOfCidr(network.cidr), random)
  const ports = new Pool({ first: firstPort, size: lastPort - firstPort + 1 }, random)
  const allocate = (service: Service, old: Frozen<Service> | undefined) => new Allocation(addresses, ports, network, service, old).run()
  return {
    hooks: {
      beforeCreate: (object) => allocate(object as unknown as Service, undefined),
      beforeUpdate: (object, old) => {
        const service = object as unknown as Service
        // A write of the status takes the spec over as it was: it allocates nothing.
        if (service.spec === (old as Frozen<Service>).spec) return nothingReserved
        keepAllocated(service, old as Frozen<Service>)
        return allocate(service, old as Frozen<Service>)
      },
    },
    follow: (reader) => {
      reader.onChange<KubeObject>({ group: '', resource: 'services' }, ({ type, object, old }) => {
        if (old)
          count(
            old as Frozen<Service>,
            (ip) => addresses.free(ip),
            (port) => ports.free(port),
          )
        if (type !== 'DELETED')
          count(
            object as Frozen<Service>,
            (ip) => addresses.use(ip),
            (port) => ports.use(port),
          )
      })
    },
  }
}

const nothingReserved: Reservation = { release: () => undefined }

function count(service: Frozen<Service>, address: (ip: number) => void, port: (port: number) => void): void {
  for (const ip of clusterIpsOf(service)) address(ip)
  for (const one of nodePortsOf(service)) port(one)
}

function clusterIpsOf(service: Frozen<Service>): number[] {
  const { clusterIP, clusterIPs } = service.spec ?? {}
  return (clusterIPs ?? (clusterIP ? [clusterIP] : [])).flatMap((text) => parseIpv4(text) ?? [])
}

/** Each once: one service may use one node port for several protocols. */
function nodePortsOf(service: Frozen<Service>): ReadonlySet<number> {
  const { ports, healthCheckNodePort } = service.spec ?? {}
  const found = new Set<number>()
  for (const { nodePort } of ports ?? []) if (nodePort) found.add(nodePort)
  if (healthCheckNodePort) found.add(healthCheckNodePort)
  return found
}

function needsClusterIp(service: Frozen<Service>): boolean {
  return (service.spec?.type ?? 'ClusterIP') !== 'ExternalName' && service.spec?.clusterIP !== 'None'
}

function needsNodePorts(service: Frozen<Service>): boolean {
  const { type, allocateLoadBalancerNodePorts } = service.spec ?? {}
  return type === 'NodePort' || (type === 'LoadBalancer' && allocateLoadBalancerNodePorts !== false)
}

/** An update that leaves out what was allocated keeps it. Upstream: patchAllocatedValues. */
function keepAllocated(service: Service, old: Frozen<Service>): void {
  const spec = service.spec
  if (!spec || !old.spec) return
  if (needsClusterIp(old) && needsClusterIp(service) && !spec.clusterIP && !spec.clusterIPs?.length) {
    spec.clusterIP = old.spec.clusterIP
    spec.clusterIPs = [...(old.spec.clusterIPs ?? [])]
  }
  if (!needsNodePorts(old) || !needsNodePorts(service)) return
  const key = (port: Frozen<ServicePort>) => `${port.protocol ?? 'TCP'}/${port.port}`
  const before = new Map((old.spec.ports ?? []).map((port) => [key(port), port.nodePort]))
  for (const port of spec.ports ?? []) port.nodePort ||= before.get(key(port))
  if (needsHealthCheck(service) && needsHealthCheck(old)) spec.healthCheckNodePort ||= old.spec.healthCheckNodePort
}

function needsHealthCheck(service: Frozen<Service>): boolean {
  return service.spec?.type === 'LoadBalancer' && service.spec.externalTrafficPolicy === 'Local'
}

/** One write's way through the pools. */
class Allocation implements Reservation {
  readonly #addresses: Pool
  readonly #ports: Pool
  readonly #network: ServiceNetwork
  readonly #service: Service
  readonly #old: Frozen<Service> | undefined
  readonly #held: (() => void)[] = []
  readonly #errors: FieldError[] = []

  constructor(addresses: Pool, ports: Pool, network: ServiceNetwork, service: Service, old: Frozen<Service> | undefined) {
    this.#addresses = addresses
    this.#ports = ports
    this.#network = network
    this.#service = service
    this.#old = old
  }

  run(): Reservation {
    try {
      this.#families()
      if (needsClusterIp(this.#service)) this.#clusterIp()
      if (needsNodePorts(this.#service)) this.#nodePorts()
      if (needsHealthCheck(this.#service)) this.#healthCheck()
      if (this.#errors.length > 0) throw invalid({ group: '', kind: 'Service' }, this.#service.metadata.name ?? '', this.#errors)
      return this
    } catch (error) {
      this.release()
      throw error
    }
  }

  release(): void {
    for (const release of this.#held.splice(0)) release()
  }

  /** One family, IPv4: what this cluster's service network has. */
  #families(): void {
    const spec = this.#service.spec
    if (!spec || spec.type === 'ExternalName') return
    if (spec.clusterIP === 'None') spec.clusterIPs ??= ['None']
    spec.ipFamilies ??= ['IPv4']
    spec.ipFamilyPolicy ??= 'SingleStack'
    if (spec.ipFamilyPolicy === 'RequireDualStack') {
      const path = FieldPath.of('spec', 'ipFamilyPolicy')
      this.#errors.push(fieldError.invalid(path, spec.ipFamilyPolicy, 'this cluster is not configured for dual-stack services'))
    }
    if (spec.ipFamilies.includes('IPv6')) {
      const path = FieldPath.of('spec', 'ipFamilies')
      this.#errors.push(fieldError.invalid(path, 'IPv6', 'not configured on this cluster'))
    }
  }

  #clusterIp(): void {
    const spec = this.#service.spec
    if (!spec) return
    const asked = spec.clusterIPs?.[0] ?? spec.clusterIP
    if (asked) {
      spec.clusterIP = asked
      spec.clusterIPs ??= [asked]
      this.#claimAddress(asked)
      return
    }
    const ip = this.#addresses.next()
    if (ip === undefined) throw internalError(new Error('failed to allocate a serviceIP: range is full'))
    this.#held.push(() => this.#addresses.release(ip))
    spec.clusterIP = formatIpv4(ip)
    spec.clusterIPs = [spec.clusterIP]
  }

  #claimAddress(text: string): void {
    const ip = parseIpv4(text)
    if (ip === undefined) return // validation says what is wrong with it
    if (this.#old && clusterIpsOf(this.#old).includes(ip)) return
    const claim = this.#addresses.check(ip)
    const why =
      claim === 'taken'
        ? 'provided IP is already allocated'
        : claim === 'outside'
          ? `the provided IP (${text}) is not in the valid range. The range of valid IPs is ${this.#network.cidr}`
          : undefined
    if (why) this.#errors.push(fieldError.invalid(FieldPath.of('spec', 'clusterIPs'), this.#service.spec?.clusterIPs, `failed to allocate IP ${text}: ${why}`))
    else this.#hold(this.#addresses, ip)
  }

  #nodePorts(): void {
    const mine = new Map<number, string>()
    const before = this.#old ? nodePortsOf(this.#old) : new Set<number>()
    for (const [at, port] of (this.#service.spec?.ports ?? []).entries()) {
      const path = FieldPath.of('spec', 'ports').index(at).child('nodePort')
      if (!port.nodePort) port.nodePort = this.#nextPort()
      else if (!mine.has(port.nodePort) && !before.has(port.nodePort)) this.#claimPort(port.nodePort, path)
      mine.set(port.nodePort, port.protocol ?? 'TCP')
    }
  }

  #healthCheck(): void {
    const spec = this.#service.spec
    if (!spec) return
    if (!spec.healthCheckNodePort) spec.healthCheckNodePort = this.#nextPort()
    else if (spec.healthCheckNodePort !== this.#old?.spec?.healthCheckNodePort) {
      this.#claimPort(spec.healthCheckNodePort, FieldPath.of('spec', 'healthCheckNodePort'))
    }
  }

  #nextPort(): number {
    const port = this.#ports.next()
    if (port === undefined) throw internalError(new Error('failed to allocate a nodePort: range is full'))
    this.#held.push(() => this.#ports.release(port))
    return port
  }

  #claimPort(port: number, path: FieldPath): void {
    const claim = this.#ports.check(port)
    const [first, last] = this.#network.nodePorts
    if (claim === 'taken') this.#errors.push(fieldError.invalid(path, port, 'provided port is already allocated'))
    else if (claim === 'outside') {
      this.#errors.push(fieldError.invalid(path, port, `provided port is not in the valid range. The range of valid ports is ${first}-${last}`))
    } else this.#hold(this.#ports, port)
  }

  #hold(pool: Pool, value: number): void {
    pool.reserve(value)
    this.#held.push(() => pool.release(value))
  }
}
