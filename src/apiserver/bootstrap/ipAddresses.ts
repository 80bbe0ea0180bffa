/**
 * Keeps one IPAddress object per cluster IP in use (L3), as owners of addresses are looked up. The services are the truth; the objects
 * follow them.
 * Upstream: pkg/registry/core/service/ipallocator and controller/repairip.go.
 */

import type { Service } from '#api/gen/types/core.v1'
import type { IPAddress } from '#api/gen/types/networking.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Logger } from '#base/log'
import type { Transport } from '#client/transport'
import type { ObjectReader } from '../admission/admission.ts'

const path = '/apis/networking.k8s.io/v1/ipaddresses'
const services = { group: '', resource: 'services' }
const ipAddresses = { group: 'networking.k8s.io', resource: 'ipaddresses' }
const managedBy = 'ipallocator.k8s.io'

/** Follows the services until the signal aborts. Changes are worked off one after the other. */
export async function keepIpAddresses(deps: { reader: ObjectReader; transport: Transport; log: Logger }, signal: AbortSignal): Promise<void> {
  const { reader } = deps
  let wake = () => {}
  const changed = new Set<string>()
  const note = (service: Frozen<Service> | undefined) => {
    for (const ip of addressesOf(service)) changed.add(ip)
    wake()
  }
  const stop = reader.onChange<KubeObject>(services, ({ object, old }) => {
    note(object as Frozen<Service>)
    note(old as Frozen<Service> | undefined)
  })
  signal.addEventListener('abort', () => wake(), { once: true })
  for (const service of reader.list<KubeObject>(services)) note(service as Frozen<Service>)
  for (const object of reader.list<KubeObject>(ipAddresses)) if (isOurs(object)) changed.add(object.metadata.name ?? '')
  while (!signal.aborted) {
    const [ip] = changed
    if (ip === undefined) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
      continue
    }
    changed.delete(ip)
    await settle(deps, ip, signal).catch((error) => {
      if (!signal.aborted) deps.log.error(error, 'Keeping an IPAddress failed', { ip })
    })
  }
  stop()
}

/** Makes the object of one address say who has it. */
async function settle({ reader, transport }: { reader: ObjectReader; transport: Transport }, ip: string, signal: AbortSignal): Promise<void> {
  const owner = reader.list<KubeObject>(services).find((service) => addressesOf(service as Frozen<Service>).includes(ip))
  const existing = reader.get<KubeObject>(ipAddresses, '', ip)
  if (existing && (!owner || !isOf(existing as Frozen<IPAddress>, owner))) {
    if (!isOurs(existing)) return
    await transport.request({ method: 'DELETE', path: `${path}/${ip}` }, signal).catch(ignoring('NotFound'))
  }
  if (!owner || (existing && isOf(existing as Frozen<IPAddress>, owner))) return
  const body = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IPAddress',
    metadata: { name: ip, labels: { 'ipaddress.kubernetes.io/ip-family': 'IPv4', 'ipaddress.kubernetes.io/managed-by': managedBy } },
    spec: { parentRef: { group: '', resource: 'services', namespace: owner.metadata.namespace, name: owner.metadata.name } },
  }
  await transport.request({ method: 'POST', path, body }, signal).catch(ignoring('AlreadyExists'))
}

function ignoring(reason: 'NotFound' | 'AlreadyExists'): (error: unknown) => void {
  return (error) => {
    if (!isStatus(error, reason)) throw error
  }
}

function addressesOf(service: Frozen<Service> | undefined): readonly string[] {
  return (service?.spec?.clusterIPs ?? []).filter((ip) => ip !== 'None' && ip !== '')
}

function isOurs(object: Frozen<KubeObject>): boolean {
  return object.metadata.labels?.['ipaddress.kubernetes.io/managed-by'] === managedBy
}

function isOf(address: Frozen<IPAddress>, service: Frozen<KubeObject>): boolean {
  const parent = address.spec?.parentRef
  return parent?.name === service.metadata.name && parent?.namespace === service.metadata.namespace
}
