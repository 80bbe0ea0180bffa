/**
 * Gives services their cluster IPs (L3). An address is taken by creating the IPAddress object that is named after it, so that all API servers
 * over one store agree; the ranges are the ServiceCIDR objects that are ready, and the configured ones until their object exists.
 * Upstream: pkg/registry/core/service/ipallocator/{cidrallocator,ipallocator}.go (v1.36).
 */
import type { IPAddress, ServiceCIDR } from '#api/gen/types/networking.v1'
import { findCondition } from '#api/machinery/conditions'
import { parseIp } from '#api/machinery/ip'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { internalError, isStatus } from '#api/machinery/status'
import type { Random } from '#base/random'
import type { Transport } from '#client/transport'
import type { ObjectReader } from '../../core/objectReader.ts'
import { familyOf, type IpFamily, IpRange } from './ipRange.ts'

export const defaultServiceCidrName = 'kubernetes'
export const ipAddressesPath = '/apis/networking.k8s.io/v1/ipaddresses'
export const managedBy = 'ipallocator.k8s.io'
const ipAddresses = { group: 'networking.k8s.io', resource: 'ipaddresses' }
const serviceCidrs = { group: 'networking.k8s.io', resource: 'servicecidrs' }

/** Which service an address is for. */
export interface ServiceRef {
  readonly namespace: string
  readonly name: string
}

export class IpAllocator {
  /** The families that services of this cluster may have, the default one first. */
  readonly families: readonly IpFamily[]
  readonly #configured: readonly IpRange[]
  readonly #random: Random
  #reader: ObjectReader | undefined
  #transport: Transport | undefined

  /** `cidr`: the first range, or one of each family with a comma between. */
  constructor(cidr: string, random: Random) {
    this.#configured = serviceRanges(cidr)
    this.families = this.#configured.map((range) => range.family)
    this.#random = random
  }

  follow(reader: ObjectReader): void {
    this.#reader = reader
  }

  connect(transport: Transport): void {
    this.#transport = transport
  }

  /** Takes this very address. @returns why it cannot be had, or undefined. */
  async allocate(ip: string, service: ServiceRef, dryRun: boolean): Promise<string | undefined> {
    const address = parseIp(ip)
    const ranges = address ? this.#ranges().filter((range) => range.covers(address)) : []
    const [range] = ranges
    if (!address || !range) return 'the provided network does not match the current range'
    if (!ranges.some((one) => one.contains(address))) return `the provided IP (${ip}) is not in the valid range. The range of valid IPs is ${range.cidr}`
    return (await this.#take(ip, service, dryRun)) ? undefined : 'provided IP is already allocated'
  }

  /** Takes any address of a family. @throws Status InternalError when the ranges are full. */
  async allocateNext(family: IpFamily, service: ServiceRef, dryRun: boolean): Promise<string> {
    for (const range of this.#ranges()) {
      if (range.family !== family) continue
      for (const ip of range.candidates(this.#random)) if (await this.#take(ip, service, dryRun)) return ip
    }
    throw internalError(new Error('failed to allocate a serviceIP: range is full'))
  }

  /** Releases an address, unless it belongs to another service by now. The repair loop releases addresses for which this fails. */
  async release(ip: string, service: ServiceRef): Promise<void> {
    const parent = this.#reader?.get<IPAddress>(ipAddresses, '', ip)?.spec?.parentRef
    if (parent && (parent.namespace !== service.namespace || parent.name !== service.name)) return
    await this.#request('DELETE', `${ipAddressesPath}/${ip}`).catch(() => undefined)
  }

  async #take(ip: string, service: ServiceRef, dryRun: boolean): Promise<boolean> {
    if (this.#reader?.get<KubeObject>(ipAddresses, '', ip)) return false
    if (dryRun) return true
    try {
      await this.#request('POST', ipAddressesPath, ipAddressFor(ip, service))
      return true
    } catch (error) {
      if (isStatus(error, 'AlreadyExists')) return false
      throw error
    }
  }

  async #request(method: 'POST' | 'DELETE', path: string, body?: object): Promise<void> {
    if (!this.#transport) throw internalError(new Error('the service address allocator is not connected yet'))
    await this.#transport.request({ method, path, ...(body ? { body } : {}) })
  }

  #ranges(): readonly IpRange[] {
    const objects = this.#reader?.list<ServiceCIDR>(serviceCidrs) ?? []
    const ranges = objects.filter(isReady).flatMap((object) => (object.spec?.cidrs ?? []).flatMap((cidr) => IpRange.parse(cidr) ?? []))
    // A new cluster gives the `kubernetes` service its address while its own ServiceCIDR is on the way into the cache.
    return objects.some((object) => object.metadata.name === defaultServiceCidrName) ? ranges : [...ranges, ...this.#configured]
  }
}

/** The object that takes an address. */
export function ipAddressFor(ip: string, service: ServiceRef): IPAddress {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IPAddress',
    metadata: { name: ip, labels: { 'ipaddress.kubernetes.io/ip-family': familyOf(ip), 'ipaddress.kubernetes.io/managed-by': managedBy } },
    spec: { parentRef: { resource: 'services', namespace: service.namespace, name: service.name } },
  }
}

/**
 * The configured ranges: one, or one of each family.
 * @throws Error for any other text: a mistake in the configuration.
 */
export function serviceRanges(cidr: string): readonly IpRange[] {
  const ranges = cidr.split(',').map((text) => IpRange.parse(text.trim()))
  const found = ranges.flatMap((range) => range ?? [])
  const [first, second] = found
  if (!first || found.length !== ranges.length || found.length > 2 || first.family === second?.family) throw new Error(`no usable service CIDR: ${cidr}`)
  return found
}

/** Whether a range allocates addresses. One that is being deleted does not; one without a Ready condition does. */
function isReady({ metadata, status }: Frozen<ServiceCIDR>): boolean {
  return !metadata.deletionTimestamp && (findCondition(status?.conditions, 'Ready')?.status ?? 'True') === 'True'
}
