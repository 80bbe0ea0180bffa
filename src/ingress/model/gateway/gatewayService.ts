/**
 * The Service that clients reach a Gateway by (L3, pure). It lives in the namespace of the ingress, where tenants cannot change it. Each of its ports leads to a
 * port of the nodes that belongs to this Gateway alone, so that Gateways with the same ports stay apart.
 */
import type { Service } from '#api/gen/types/core.v1'
import { type Frozen, refOfKey } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { fnv32a } from '#base/fnv'

/** Holds `namespace/name` of the Gateway. */
export const gatewayAnnotation = 'skiff.dev/gateway'
/** Ports of the nodes' addresses for the listeners of Gateways: below node ports and the kernel's own choice of ports. */
const firstPort = 10_400
const portCount = 1000
const maxShownName = 40

export interface ServicePort {
  readonly name: string
  readonly port: number
  readonly protocol: 'TCP'
  readonly targetPort: number
}

/** `namespace/name` of the Gateway; undefined: the Service is for something else. */
export function gatewayOfService({ metadata }: Frozen<Service>): string | undefined {
  return ownValue(metadata.annotations, gatewayAnnotation)
}

/** Two Gateways may get one name, rarely: the annotation says whose Service it is. */
export function gatewayServiceName(gateway: string): string {
  const shown = refOfKey(gateway).name.replaceAll('.', '-').slice(0, maxShownName)
  return `gateway-${shown}-${fnv32a(gateway).toString(16)}`
}

/** Ports of the nodes that Services of the ingress use already. */
export function takenPorts(services: readonly Frozen<Service>[]): Set<number> {
  return new Set(services.flatMap(({ spec }) => (spec?.ports ?? []).map(({ targetPort }) => Number(targetPort))))
}

/** Keeps what the Service has. @param taken by other Services @returns undefined when no port is left */
export function planServicePorts(wanted: Iterable<number>, current: Frozen<Service> | undefined, taken: ReadonlySet<number>): ServicePort[] | undefined {
  const used = new Set(taken)
  const kept = new Map<number, number>()
  for (const { port, targetPort } of current?.spec?.ports ?? []) {
    const target = Number(targetPort)
    if (!inRange(target) || used.has(target)) continue
    kept.set(port, target)
    used.add(target)
  }
  const planned: ServicePort[] = []
  for (const port of [...wanted].sort((a, b) => a - b)) {
    const targetPort = kept.get(port) ?? freePort(used)
    if (targetPort === undefined) return undefined
    used.add(targetPort)
    planned.push({ name: `port-${port}`, port, protocol: 'TCP', targetPort })
  }
  return planned
}

const inRange = (port: number) => port >= firstPort && port < firstPort + portCount

function freePort(used: ReadonlySet<number>): number | undefined {
  for (let port = firstPort; port < firstPort + portCount; port++) if (!used.has(port)) return port
  return undefined
}
