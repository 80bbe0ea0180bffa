/**
 * Repairs IPAddress objects (L3): every used cluster IP has its object, and no object of ours outlives its service. The allocator writes them with
 * each service; this repairs what crashes and older versions left behind. Runs at start and every few minutes.
 * Upstream: pkg/registry/core/service/ipallocator/controller/repairip.go (v1.36).
 */
import type { Service } from '#api/gen/types/core.v1'
import type { IPAddress } from '#api/gen/types/networking.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { parseTime } from '#base/time'
import type { ApiRequest } from '#client/transport'
import type { ServerWork } from '../../core/serverWork.ts'
import type { KindWorkDeps } from '../../registry/kindStorage.ts'
import { ipAddressesPath, ipAddressFor, managedBy, type ServiceRef } from './ipAllocator.ts'
import { clusterIpsOf, serviceRef } from './serviceFields.ts'

const services = { group: '', resource: 'services' }
const ipAddresses = { group: 'networking.k8s.io', resource: 'ipaddresses' }
const intervalMs = 180_000
/** An address is allocated before its service is stored: younger objects without a service are kept. */
const graceMs = 60_000

export function ipAddressRepair(deps: KindWorkDeps): ServerWork {
  return {
    async run(signal) {
      while (!signal.aborted) {
        await repairOnce(deps, signal).catch((error) => {
          if (!signal.aborted) deps.log.error(error, 'Repairing IPAddress objects failed; trying again later')
        })
        await deps.clock.sleep(intervalMs, signal).catch(() => undefined)
      }
    },
  }
}

async function repairOnce(deps: KindWorkDeps, signal: AbortSignal): Promise<void> {
  const owners = new Map<string, ServiceRef>()
  for (const service of deps.reader.list<Service>(services)) for (const ip of clusterIpsOf(service)) if (!owners.has(ip)) owners.set(ip, serviceRef(service))
  const write = (request: ApiRequest, expected: 'NotFound' | 'AlreadyExists') => deps.transport.request(request, signal).catch(unless(expected))
  for (const object of deps.reader.list<IPAddress>(ipAddresses)) {
    const ip = object.metadata.name ?? ''
    const owner = owners.get(ip)
    const isRight = owner && isOf(object, owner)
    if (!isOurs(object) || isRight || (!owner && isYoung(object, deps.clock.now()))) owners.delete(ip)
    else {
      const { uid, resourceVersion } = object.metadata
      await write({ method: 'DELETE', path: `${ipAddressesPath}/${ip}`, body: { preconditions: { uid, resourceVersion } } }, 'NotFound')
    }
  }
  for (const [ip, owner] of owners) await write({ method: 'POST', path: ipAddressesPath, body: ipAddressFor(ip, owner) }, 'AlreadyExists')
}

function unless(reason: 'NotFound' | 'AlreadyExists'): (error: unknown) => undefined {
  return (error) => {
    if (!isStatus(error, reason) && !isStatus(error, 'Conflict')) throw error
    return undefined
  }
}

function isOurs({ metadata }: Frozen<IPAddress>): boolean {
  return metadata.labels?.['ipaddress.kubernetes.io/managed-by'] === managedBy
}

function isOf({ spec }: Frozen<IPAddress>, service: ServiceRef): boolean {
  return spec?.parentRef?.name === service.name && spec.parentRef.namespace === service.namespace
}

function isYoung({ metadata }: Frozen<IPAddress>, nowMs: number): boolean {
  return nowMs - (parseTime(metadata.creationTimestamp ?? '') ?? 0) < graceMs
}
