/**
 * Which node ports a write of a service takes and which it gives up (L3, pure).
 * Upstream: initNodePorts, updateNodePorts, allocHealthCheckNodePort, updateHealthCheckNodePort of
 * pkg/registry/core/service/storage/alloc.go (v1.36).
 */
import type { Service, ServicePort } from '#api/gen/types/core.v1'
import { FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { internalError, StatusError } from '#api/machinery/status'
import { allocatesNodePorts, mayHaveNodePorts, needsHealthCheckPort, nodePortsOf } from './serviceFields.ts'

/** What the plan takes ports from. Refusals are texts of upstream. */
export interface PortSource {
  /** @returns why this very port cannot be had, or undefined */
  allocate(port: number): string | undefined
  /** Undefined when all ports are taken. */
  allocateNext(): number | undefined
}

export interface NodePortPlan {
  /** The node port of each of the service's ports, in their order. */
  readonly nodePorts: readonly (number | undefined)[]
  readonly healthCheckNodePort: number | undefined
  /** Ports that the source gave. */
  readonly taken: readonly number[]
  /** Ports of the old service that the new one does not have. */
  readonly released: readonly number[]
}

const portsPath = FieldPath.of('spec', 'ports')
const fullText = 'range is full'

/** @throws StatusError Invalid when a port cannot be had, InternalError when the range is full */
export function planNodePorts(service: Frozen<Service>, old: Frozen<Service> | undefined, source: PortSource): NodePortPlan {
  const taken: number[] = []
  const claim: PortSource['allocate'] = (port) => {
    const refusal = source.allocate(port)
    if (refusal === undefined) taken.push(port)
    return refusal
  }
  const next: PortSource['allocateNext'] = () => {
    const port = source.allocateNext()
    if (port !== undefined) taken.push(port)
    return port
  }
  const given: PortSource = { allocate: claim, allocateNext: next }
  const nodePorts = portsOf(service, old, given)
  const healthCheckNodePort = healthCheckPort(service, old, given)
  const kept = new Set([...nodePorts, healthCheckNodePort])
  const released = old ? [...nodePortsOf(old)].filter((port) => !kept.has(port)) : []
  return { nodePorts, healthCheckNodePort, taken, released }
}

function portsOf(service: Frozen<Service>, old: Frozen<Service> | undefined, source: PortSource): (number | undefined)[] {
  if (!mayHaveNodePorts(service)) return (service.spec?.ports ?? []).map(({ nodePort }) => nodePort)
  return old ? updatedPorts(service, old, source) : createdPorts(service, source)
}

/** Entries for one port of the service, such as those of two protocols, share a node port. */
function createdPorts(service: Frozen<Service>, source: PortSource): (number | undefined)[] {
  const ports = service.spec?.ports ?? []
  const asked = askedPorts(ports)
  const byPort = new Map<number, number>()
  return ports.map(({ port, nodePort }, index) => {
    if (!nodePort && !allocatesNodePorts(service)) return nodePort
    const allocated = byPort.get(port)
    if (allocated !== undefined && (!nodePort || nodePort === allocated)) return allocated
    const wanted = allocated === undefined ? asked.get(port) : nodePort
    const got = wanted ? claimed(service, index, wanted, source) : nextPort(source)
    if (allocated === undefined) byPort.set(port, got)
    return got
  })
}

/** The first node port that is asked for each port. */
function askedPorts(ports: readonly Frozen<ServicePort>[]): ReadonlyMap<number, number> {
  const asked = new Map<number, number>()
  for (const { port, nodePort } of ports) if (nodePort && !asked.has(port)) asked.set(port, nodePort)
  return asked
}

function updatedPorts(service: Frozen<Service>, old: Frozen<Service>, source: PortSource): (number | undefined)[] {
  const before = new Set((old.spec?.ports ?? []).map(({ nodePort }) => nodePort))
  const mine = new Set<number>()
  const used = new Set<string>()
  return (service.spec?.ports ?? []).map(({ protocol, nodePort }, index) => {
    if (!nodePort && !allocatesNodePorts(service)) return nodePort
    if (nodePort && !before.has(nodePort) && !mine.has(nodePort)) mine.add(claimed(service, index, nodePort, source))
    const got = nodePort || nextPort(source)
    const use = `${protocol} ${got}`
    if (used.has(use)) throw new StatusError('', `duplicate nodePort: {${protocol} ${got}}`)
    used.add(use)
    return got
  })
}

function claimed(service: Frozen<Service>, index: number, port: number, source: PortSource): number {
  const refusal = source.allocate(port)
  if (refusal === undefined) return port
  throw invalid({ group: '', kind: 'Service' }, service.metadata.name ?? '', [fieldError.invalid(portsPath.index(index).child('nodePort'), port, refusal)])
}

function nextPort(source: PortSource): number {
  const port = source.allocateNext()
  if (port === undefined) throw internalError(new Error(`failed to allocate a nodePort: ${fullText}`))
  return port
}

function healthCheckPort(service: Frozen<Service>, old: Frozen<Service> | undefined, source: PortSource): number | undefined {
  const asked = service.spec?.healthCheckNodePort
  if (!needsHealthCheckPort(service) || (old && needsHealthCheckPort(old))) return asked
  if (asked) {
    const refusal = source.allocate(asked)
    if (refusal !== undefined) throw internalError(new Error(`failed to allocate requested HealthCheck NodePort ${asked}: ${refusal}`))
    return asked
  }
  const port = source.allocateNext()
  if (port === undefined) throw internalError(new Error(`failed to allocate a HealthCheck NodePort 0: ${fullText}`))
  return port
}
