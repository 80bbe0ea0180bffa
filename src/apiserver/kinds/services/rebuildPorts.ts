/**
 * Computes which node ports should be allocated, from the services and the stored state (L3).
 * Upstream: doRunOnce and collectServiceNodePorts of pkg/registry/core/service/portallocator/controller/repair.go (v1.36).
 */
import type { Service } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { inSlices } from '../../core/fairLoop.ts'
import { formatPortRange, PortBitmap, type PortRange } from './portBitmap.ts'

/** A port may be allocated before its service is stored, so that an unused port is kept for this many rounds. */
const roundsBeforeCleanUp = 3

/** As many as the event recorder queues. */
const maxFindings = 1000

/** For each unused port, how many more rounds it is kept. */
export type Leaks = ReadonlyMap<number, number>

/** A service that an event tells about. */
export interface Finding {
  readonly service: Frozen<Service>
  readonly reason: 'PortNotAllocated' | 'PortAlreadyAllocated' | 'PortOutOfRange'
  readonly note: string
}

export interface RebuiltPorts {
  readonly ports: PortBitmap
  readonly leaks: Leaks
  /** Unused ports that are allocated no longer. */
  readonly cleaned: readonly number[]
  readonly findings: readonly Finding[]
}

/** @param stored the state in the store; its range may be another one */
export async function rebuildPorts(services: readonly Frozen<Service>[], stored: PortBitmap, range: PortRange, leaksBefore: Leaks): Promise<RebuiltPorts> {
  const ports = PortBitmap.empty(range)
  const unused = stored.copy()
  const findings: Finding[] = []
  const report = (finding: Finding) => {
    if (findings.length < maxFindings) findings.push(finding)
  }
  await inSlices(services, (service) => {
    for (const port of occurrences(service)) {
      const claim = ports.allocate(port)
      if (claim === 'allocated') {
        if (!unused.has(port)) report({ service, reason: 'PortNotAllocated', note: `Port ${port} is not allocated; repairing` })
        unused.release(port)
      } else if (claim === 'taken') {
        report({ service, reason: 'PortAlreadyAllocated', note: `Port ${port} was assigned to multiple services; please recreate service` })
      } else {
        const note = `Port ${port} is not within the port range ${formatPortRange(range)}; please recreate service`
        report({ service, reason: 'PortOutOfRange', note })
      }
    }
  })
  return { ...keepRecent(unused, ports, leaksBefore), ports, findings }
}

/** Keeps unused ports allocated for some rounds. */
function keepRecent(unused: PortBitmap, ports: PortBitmap, before: Leaks): Pick<RebuiltPorts, 'leaks' | 'cleaned'> {
  const leaks = new Map<number, number>()
  const cleaned: number[] = []
  for (const port of unused.ports()) {
    const rounds = before.get(port) ?? roundsBeforeCleanUp - 1
    if (rounds > 0) {
      leaks.set(port, rounds - 1)
      ports.allocate(port)
    } else cleaned.push(port)
  }
  return { leaks, cleaned }
}

/** A service's node ports: one that several protocols share once, one that is used twice with one protocol twice. */
function occurrences({ spec }: Frozen<Service>): number[] {
  const found: number[] = []
  const protocols = new Map<number, Set<string>>()
  for (const { nodePort, protocol = 'TCP' } of spec?.ports ?? []) {
    if (!nodePort) continue
    const seen = protocols.get(nodePort)
    if (!seen || seen.has(protocol)) found.push(nodePort)
    protocols.set(nodePort, (seen ?? new Set()).add(protocol))
  }
  const health = spec?.healthCheckNodePort
  if (health && (protocols.get(health)?.has('TCP') ?? true)) found.push(health)
  return found
}
