/**
 * Gives services their node ports (L3): a port is marked in the store before the service is written, and released after the service has given it
 * up. A crash between the two leaks the port until the repair finds it.
 * Upstream: pkg/registry/core/service/portallocator/{allocator,operation}.go (v1.36).
 */
import type { Service } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Random } from '#base/random'
import { type NodePortPlan, type PortSource, planNodePorts } from './nodePortPlan.ts'
import { formatPortRange, type PortBitmap } from './portBitmap.ts'
import { mayHaveNodePorts, needsHealthCheckPort } from './serviceFields.ts'
import type { StoredPorts } from './storedPorts.ts'

/** A dry run shows ports from the one after this: it does not know which ports the write would get. */
const lastDryRunPort = 32_768

const takenText = 'provided port is already allocated'

export class NodePortAllocator {
  readonly #stored: StoredPorts
  readonly #random: Random

  constructor(stored: StoredPorts, random: Random) {
    this.#stored = stored
    this.#random = random
  }

  /** Takes the ports that the service needs. @throws StatusError Invalid or InternalError; then nothing is taken */
  async allocate(service: Frozen<Service>, old: Frozen<Service> | undefined, dryRun: boolean): Promise<NodePortPlan> {
    if (!this.#concerns(service)) return planNodePorts(service, old, noPorts)
    if (dryRun) return planNodePorts(service, old, dryRunSource(await this.#stored.view()))
    let plan: NodePortPlan | undefined
    let refusal: unknown
    await this.#stored.update((ports) => {
      refusal = plan = undefined
      try {
        plan = planNodePorts(service, old, this.#source(ports))
      } catch (error) {
        refusal = error
      }
      return plan !== undefined
    })
    if (!plan) throw refusal
    return plan
  }

  /** The repair releases ports for which this fails. */
  async release(released: Iterable<number>): Promise<void> {
    const gone = [...released]
    if (gone.length === 0) return
    const release = (ports: PortBitmap) => {
      for (const port of gone) ports.release(port)
      return true
    }
    await this.#stored.update(release).catch(() => undefined)
  }

  /** Whether the service may take a port now. */
  #concerns(service: Frozen<Service>): boolean {
    return mayHaveNodePorts(service) || needsHealthCheckPort(service)
  }

  #source(ports: PortBitmap): PortSource {
    return {
      allocateNext: () => ports.allocateNext(this.#random),
      allocate(port) {
        const claim = ports.allocate(port)
        if (claim === 'outside') return `provided port is not in the valid range. The range of valid ports is ${formatPortRange(ports.range)}`
        return claim === 'taken' ? takenText : undefined
      },
    }
  }
}

const noPorts: PortSource = { allocate: () => takenText, allocateNext: () => undefined }

/** As upstream, a dry run does not check that a port is in the range. */
function dryRunSource(ports: PortBitmap): PortSource {
  const mine = new Set<number>()
  let last = lastDryRunPort
  return {
    allocate(port) {
      if (ports.has(port) || mine.has(port)) return takenText
      last = mine.size === 0 ? port : Math.max(last, port)
      mine.add(port)
      return undefined
    },
    allocateNext() {
      last++
      mine.add(last)
      return last
    },
  }
}
