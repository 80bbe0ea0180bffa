/**
 * One connection to a driver that runs on each node for itself (L3), as the host path driver does: a call goes to the node that has the volume or the snapshot, and
 * one that creates a volume goes to the nodes of its topology, in their order. While a node does not answer, a call for a volume that no
 * other node has fails; it does not return NOT_FOUND.
 */
import { GrpcError } from '#grpc/grpcError'
import type { CreateVolumeRequest } from '../server/csiTypes.ts'
import type { CsiAnswer, CsiConnection, CsiRequest } from './driver.ts'
import { maxPages } from './publishedNodes.ts'
import { isFinal } from './resizer/callOutcome.ts'
import { UndecidedVolumes } from './undecidedVolumes.ts'

export interface NodeDriver {
  /** As the driver calls the node, and the value of the topology key. */
  readonly nodeId: string
  readonly connection: CsiConnection
}

type Method = Parameters<CsiConnection['call']>[0]

interface Call {
  readonly method: Method
  readonly request: object
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

interface Named {
  readonly volumeId?: string | undefined
  readonly sourceVolumeId?: string | undefined
  readonly sourceVolumeIds?: readonly string[] | undefined
  readonly snapshotId?: string | undefined
  readonly groupSnapshotId?: string | undefined
  readonly nodeId?: string | undefined
}

const notFound = (what: string) => new GrpcError('NOT_FOUND', what).inGoWords()
const hasCode = (error: unknown, code: GrpcError['code']) => error instanceof GrpcError && error.code === code

/** The driver that runs on all nodes. */
export interface JoinedDriver {
  readonly topologyKey: string
  /** A node's program that gives another name is not believed. */
  readonly name: string
  readonly monotonicMs: () => number
}

/** @param drivers may become more */
export function joinNodeDrivers(drivers: readonly NodeDriver[], { topologyKey, name, monotonicMs }: JoinedDriver): CsiConnection {
  const joined = new JoinedDrivers(drivers, topologyKey, monotonicMs)
  const identityOf = async ({ nodeId, connection }: NodeDriver, ...[method, ...rest]: Parameters<CsiConnection['identity']>) => {
    const answer = await connection.identity<{ readonly name?: string }>(method, ...rest)
    if (method === 'GetPluginInfo' && answer.name !== name)
      throw new GrpcError('FAILED_PRECONDITION', `node ${nodeId} runs the driver ${answer.name}, and not ${name}`).inGoWords()
    return answer as never
  }
  return {
    call: (method, request, timeoutMs, signal) => joined.call({ method, request, timeoutMs, signal }) as never,
    identity: (...asked) => first(drivers.map((driver) => identityOf(driver, ...asked))),
    nodeCapabilities: (timeoutMs, signal) => first(drivers.map(({ connection }) => connection.nodeCapabilities(timeoutMs, signal))),
    close: () => {
      for (const { connection } of drivers) connection.close()
    },
  }
}

/** All nodes run the same driver: any answer will do. @throws one of the errors when all fail */
async function first<T>(answers: readonly Promise<T>[]): Promise<T> {
  try {
    return await Promise.any(answers)
  } catch (error) {
    throw (error as AggregateError).errors[0] ?? new GrpcError('UNAVAILABLE', 'the cluster has no node with the driver').inGoWords()
  }
}

class JoinedDrivers {
  readonly #drivers: readonly NodeDriver[]
  readonly #topologyKey: string
  /** By the id of a volume, snapshot or group of snapshots. Ids never move. */
  readonly #places = new Map<string, NodeDriver>()
  readonly #undecided: UndecidedVolumes<NodeDriver>

  constructor(drivers: readonly NodeDriver[], topologyKey: string, monotonicMs: () => number) {
    this.#drivers = drivers
    this.#topologyKey = topologyKey
    this.#undecided = new UndecidedVolumes(monotonicMs)
  }

  call(call: Call): Promise<unknown> {
    switch (call.method) {
      case 'controllerGetCapabilities':
      case 'groupControllerGetCapabilities':
        return first(this.#drivers.map((driver) => ask(driver, call)))
      case 'createVolume':
        return this.#createVolume(call)
      case 'controllerPublishVolume':
      case 'controllerUnpublishVolume':
        return this.#ofNode(call)
      case 'listVolumes':
      case 'listSnapshots':
        return this.#list(call)
      case 'getCapacity':
        return this.#capacity(call)
      case 'createVolumeGroupSnapshot':
        return this.#createGroupSnapshot(call)
      case 'deleteVolumeGroupSnapshot':
      case 'getVolumeGroupSnapshot':
        return this.#ofGroup(call)
      default:
        return this.#ofEntry(call)
    }
  }

  #driverOf(nodeId: string | undefined): NodeDriver | undefined {
    return this.#drivers.find((driver) => driver.nodeId === nodeId)
  }

  async #createVolume(call: Call): Promise<unknown> {
    const request = call.request as CreateVolumeRequest
    const undecided = this.#undecided.nodeOf(request.name)
    const nodes = undecided ? [undecided] : await this.#nodesFor(request, call)
    for (const [index, driver] of nodes.entries()) {
      try {
        const answer = (await ask(driver, call)) as CsiAnswer<'createVolume'>
        if (answer.volume) this.#places.set(answer.volume.volumeId, driver)
        this.#undecided.delete(request.name)
        return answer
      } catch (error) {
        const isFull = hasCode(error, 'RESOURCE_EXHAUSTED')
        if (isFull || isFinal(error)) this.#undecided.delete(request.name)
        else this.#undecided.add(request.name, driver)
        // Only a full node leaves the volume to the next one: after other errors it may have the volume.
        if (index === nodes.length - 1 || !isFull) throw error
      }
    }
    throw new GrpcError('RESOURCE_EXHAUSTED', 'the driver runs on no node of the topology').inGoWords()
  }

  /** A copy is made where its source is. */
  async #nodesFor({ accessibilityRequirements, volumeContentSource }: CreateVolumeRequest, call: Call): Promise<readonly NodeDriver[]> {
    if (volumeContentSource) {
      const { snapshot, volume } = volumeContentSource
      const source = snapshot ? await this.#locate('getSnapshot', snapshot, call) : await this.#locate('controllerGetVolume', volume ?? {}, call)
      if (source) return [source]
      throw notFound('no node has the source of the volume')
    }
    if (!accessibilityRequirements) return this.#drivers
    const { preferred = [], requisite = [] } = accessibilityRequirements
    const nodeIds = new Set([...preferred, ...requisite].map(({ segments }) => segments[this.#topologyKey]))
    return [...nodeIds].flatMap((nodeId) => this.#driverOf(nodeId) ?? [])
  }

  async #ofNode(call: Call): Promise<unknown> {
    const { nodeId = '' } = call.request as Named
    // Without a node the volume is taken back from all nodes, and only one has it.
    if (nodeId === '') return this.#ofEntry(call)
    const driver = this.#driverOf(nodeId)
    if (driver) return ask(driver, call)
    if (call.method === 'controllerUnpublishVolume') return {}
    throw notFound('no such node')
  }

  async #ofEntry(call: Call): Promise<unknown> {
    const { volumeId, sourceVolumeId = volumeId, snapshotId } = call.request as Named
    const driver =
      sourceVolumeId === undefined
        ? await this.#locate('getSnapshot', { snapshotId }, call)
        : await this.#locate('controllerGetVolume', { volumeId: sourceVolumeId }, call)
    const isRemoval = call.method === 'deleteVolume' || call.method === 'deleteSnapshot' || call.method === 'controllerUnpublishVolume'
    if (!driver && !isRemoval) throw notFound('no node has it')
    const answer = driver ? await ask(driver, call) : {}
    if (call.method === 'deleteVolume' || call.method === 'deleteSnapshot') this.#places.delete(sourceVolumeId ?? snapshotId ?? '')
    return answer
  }

  /** A group is taken at one moment, and so on one node. */
  async #createGroupSnapshot(call: Call): Promise<unknown> {
    const { sourceVolumeIds = [] } = call.request as Named
    const found = await Promise.all(sourceVolumeIds.map((volumeId) => this.#locate('controllerGetVolume', { volumeId }, call)))
    const [driver, ...others] = new Set(found)
    if (found.includes(undefined) || !driver) throw notFound('no node has one of the volumes')
    if (others.length > 0) throw new GrpcError('FAILED_PRECONDITION', 'the volumes are on several nodes').inGoWords()
    return ask(driver, call)
  }

  async #ofGroup(call: Call): Promise<unknown> {
    const { request } = call
    const driver = await this.#locate('getVolumeGroupSnapshot', request, call)
    const isRemoval = call.method === 'deleteVolumeGroupSnapshot'
    if (!driver && !isRemoval) throw notFound('no node has the group snapshot')
    const answer = driver ? await ask(driver, call) : {}
    if (isRemoval) this.#places.delete((request as Named).groupSnapshotId ?? '')
    return answer
  }

  /** Undefined: no node has it. @throws GrpcError while a node that may have it does not answer */
  async #locate(method: 'controllerGetVolume' | 'getSnapshot' | 'getVolumeGroupSnapshot', request: Named, call: Call): Promise<NodeDriver | undefined> {
    const id = request.volumeId ?? request.snapshotId ?? request.groupSnapshotId ?? ''
    const known = this.#places.get(id)
    if (known) return known
    const question = { ...call, method, request }
    const answers = await Promise.allSettled(this.#drivers.map((driver) => ask(driver, question)))
    const at = answers.findIndex(({ status }) => status === 'fulfilled')
    const found = this.#drivers[at]
    if (found) this.#places.set(id, found)
    const failed = answers.find((answer) => answer.status === 'rejected' && !hasCode(answer.reason, 'NOT_FOUND'))
    if (!found && failed?.status === 'rejected') throw failed.reason
    return found
  }

  /** One page with everything. */
  async #list(call: Call): Promise<unknown> {
    const lists = await Promise.all(this.#drivers.map((driver) => everyPage(driver, call)))
    return { entries: lists.flat(), nextToken: '' }
  }

  async #capacity(call: Call): Promise<unknown> {
    const { accessibleTopology } = call.request as CsiRequest<'getCapacity'>
    const driver = this.#driverOf(accessibleTopology?.segments[this.#topologyKey])
    return driver ? ask(driver, call) : { availableCapacity: 0, maximumVolumeSize: null, minimumVolumeSize: null }
  }
}

function ask({ connection }: NodeDriver, { method, request, timeoutMs, signal }: Call): Promise<unknown> {
  return connection.call(method, request as never, timeoutMs, signal)
}

async function everyPage(driver: NodeDriver, call: Call): Promise<object[]> {
  const entries: object[] = []
  let startingToken = ''
  for (let pages = 0; pages < maxPages; pages++) {
    const page = (await ask(driver, { ...call, request: { ...call.request, maxEntries: 0, startingToken } })) as CsiAnswer<'listVolumes'>
    entries.push(...page.entries)
    if (!page.nextToken) return entries
    startingToken = page.nextToken
  }
  throw new Error(`the list of the driver on node ${driver.nodeId} has more than ${maxPages} pages`)
}
