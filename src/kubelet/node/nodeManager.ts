/**
 * Registers the node, renews its Lease and reports its status (L3). nodeStatus.ts computes the Node (pure), runtimeHealth.ts watches the runtime.
 * For shutdowns: shutdownSignal.ts watches logind with a lock that inhibitDelay.ts prolongs, then nodeShutdown.ts ends the pods.
 * Upstream: kubelet_node_status.go, component-helpers/apimachinery/lease (v1.36).
 */
import { uptime } from 'node:os'
import type { Lease } from '#api/gen/types/coordination.v1'
import type { Node, NodeStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { formatMicroTime } from '#base/time'
import { createWakeUp, type WakeUp } from '#base/wakeUp'
import { leases, nodes } from '#client/builtIn'
import type { KubeletContext } from '../core/context.ts'
import { equal } from '../core/equal.ts'
import type { Mirror } from '../core/listWatch.ts'
import type { ResourceManager } from '../core/resourceService.ts'
import { initialNode, type NodeFacts, nodeStatus, registrationPatch, statusChanged, transitions } from './nodeStatus.ts'
import type { RuntimeHealth } from './runtimeHealth.ts'
import { createStartupMetrics } from './startupMetrics.ts'

export interface NodeManager {
  /**
   * Registers, then renews and reports until aborted.
   * @param until ends the work without interrupting a request, so that another manager of this node can take over; default: `signal`
   */
  run(signal: AbortSignal, until?: AbortSignal): Promise<void>
  /** Resolves once the node is registered. */
  readonly registered: Promise<void>
  /** The node as the API last had it; undefined before it was seen. */
  node(): Frozen<Node> | undefined
  /** A part of the status has changed: reports it soon. */
  refresh(): void
}

const leaseNamespace = 'kube-node-lease'
const retryMs = 1_000

/** What is known of the node, for another manager that takes over. */
export interface NodeMemory {
  isRegistered: boolean
  uid: string | undefined
  /** The uid of the Node that this kubelet has created. Undefined: there was one, which may have a Lease and a CSINode. */
  createdUid: string | undefined
  wasUnschedulable: boolean | undefined
  reportedAtMs: number
  lease: Frozen<Lease> | undefined
  /** In monotonic time; undefined: never. */
  renewedAtMs: number | undefined
}

export function newNodeMemory(): NodeMemory {
  return { isRegistered: false, uid: undefined, createdUid: undefined, wasUnschedulable: undefined, reportedAtMs: 0, lease: undefined, renewedAtMs: undefined }
}

/** The parts of a kubelet that its node needs while it has no pods. */
export type NodeContext = Pick<
  KubeletContext,
  'client' | 'clock' | 'config' | 'runtime' | 'machineInfo' | 'recorder' | 'sources' | 'host' | 'metrics' | 'log'
> & {
  readonly resources: Pick<ResourceManager, 'capacity' | 'allocatable' | 'onChange'>
}

export interface NodeManagerDeps {
  pressure(): NodeFacts['pressure']
  /** Health of the container runtime. */
  readonly health: RuntimeHealth
  shutdownProblem(): string | undefined
  /** Called with the Node when it is first seen, and whenever it changes. */
  onNode(node: Frozen<Node>): void
  readonly inUse: ReportedVolumes
}

/** The attached volumes in the Node's status. */
export interface ReportedVolumes {
  /** @param before those that the status has */
  names(before: readonly string[]): string[]
  /** The status has these. */
  reported(names: readonly string[]): void
}

export function createNodeManager(
  context: NodeContext,
  { pressure, health, shutdownProblem, onNode, inUse }: NodeManagerDeps,
  memory = newNodeMemory(),
): NodeManager {
  const { client, clock, config, runtime } = context
  let markRegistered = () => {}
  const registered = new Promise<void>((resolve) => {
    markRegistered = resolve
  })
  const startup = createStartupMetrics(context, context.host ? uptime() * 1000 : undefined)

  const facts = () => factsOf(context, { pressure, health, shutdownProblem })

  const event = (reason: string, message: string, type: 'Normal' | 'Warning' = 'Normal') =>
    context.recorder.event({ kind: 'Node', name: config.nodeName, uid: memory.uid ?? config.nodeName }, type, reason, message)

  const register = async (signal: AbortSignal): Promise<void> => {
    if (!config.registerNode) return markRegistered()
    const now = await facts()
    const node = initialNode(nodeStatus(undefined, now, config), now.machine, config)
    startup.registering()
    memory.createdUid = await createNode(context, node, signal)
    if (memory.createdUid !== undefined) {
      startup.registeredNew()
      const pressures = node.status.conditions?.filter(({ type }) => type !== 'Ready')
      for (const reason of transitions(undefined, pressures)) event(reason, statusIsNow(config.nodeName, reason))
    }
    markRegistered()
  }

  let own: Mirror<Node> | undefined
  /** Controllers write into the Node too: its pod range is set soon after the registration. */
  const noticed = (node: Frozen<Node>) => {
    memory.uid = node.metadata.uid ?? memory.uid
    const unschedulable = node.spec.unschedulable ?? false
    const reason = unschedulable ? 'NodeNotSchedulable' : 'NodeSchedulable'
    if (memory.wasUnschedulable === !unschedulable) event(reason, statusIsNow(config.nodeName, reason))
    memory.wasUnschedulable = unschedulable
    if (node.spec.podCIDR) runtime.updatePodCidr(node.spec.podCIDR)
    onNode(node)
  }

  const report = async (signal: AbortSignal): Promise<void> => {
    const node: Frozen<Node> = own?.get(config.nodeName) ?? (await client.of(nodes).get({ name: config.nodeName }, { resourceVersion: '0', signal }))
    const used = volumesInUse(node.status, inUse)
    const after = { ...nodeStatus(node.status, await facts(), config), ...used }
    const due = clock.now() - memory.reportedAtMs >= config.nodeStatusReportFrequencyMs
    if (!due && !statusChanged(node.status, after)) return inUse.reported(used.volumesInUse ?? [])
    await patchStatus(context, node.status, after, signal)
    inUse.reported(used.volumesInUse ?? [])
    memory.reportedAtMs = clock.now()
    if (after.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')) startup.ready()
    for (const [reason, message, type] of nodeEvents(config.nodeName, node.status, after)) event(reason, message, type)
  }

  const renew = leaseRenewer(context, memory)
  const repeat = repeater(context, register)
  const statusBell = createWakeUp()

  return {
    registered,
    node: () => own?.get(config.nodeName),
    refresh: statusBell.ring,
    run: async (signal, until = signal) => {
      if (memory.isRegistered) markRegistered()
      else await untilRegistered(context, register, signal)
      if (until.aborted) return
      const followed = context.sources.node(config.nodeName, until, noticed)
      own = followed
      await Promise.race([followed.synced, followed.done])
      if (!memory.isRegistered) event('Starting', 'Starting kubelet.')
      memory.isRegistered = true
      // A runtime that reports changes need not be polled.
      const stopListening = runtime.onStatusChange?.(statusBell.ring)
      context.resources.onChange(statusBell.ring)
      // Until the node is ready its status is computed more often, to notice a ready network soon.
      const becomeReady = async () => {
        while (!until.aborted && !runtime.onStatusChange) {
          const ready = (await runtime.status().catch(() => undefined))?.conditions.every((condition) => condition.status)
          if (ready) return report(signal).catch(() => {})
          await clock.sleep(200, until).catch(() => {})
        }
      }
      const renewMs = (config.nodeLeaseDurationSeconds * 1000) / 4
      // An earlier manager of the node may have renewed it.
      const renewInMs = memory.renewedAtMs === undefined ? 0 : memory.renewedAtMs + renewMs - clock.monotonicMs()
      // A look that finds nothing to report does not put off the report that is due.
      const reportInMs = () => Math.max(retryMs, memory.reportedAtMs + config.nodeStatusReportFrequencyMs - clock.now())
      const lookInMs = runtime.onStatusChange ? reportInMs : () => config.nodeStatusUpdateFrequencyMs
      await Promise.all([
        followed.done,
        becomeReady(),
        repeat({ name: 'Renewing the node lease', firstInMs: renewInMs, nextInMs: () => renewMs, work: renew, bell: createWakeUp() }, signal, until),
        repeat({ name: 'Updating the node status', firstInMs: 0, nextInMs: lookInMs, work: report, bell: statusBell }, signal, until),
      ])
      stopListening?.()
    },
  }
}

/** Creates the Node, or patches the one that is there. @returns the uid of a new one */
async function createNode({ client, config }: NodeContext, node: Node, signal: AbortSignal): Promise<string | undefined> {
  try {
    return (await client.of(nodes).create(node, { signal })).metadata.uid
  } catch (error) {
    if (!isStatus(error, 'AlreadyExists')) throw error
    const existing = await client.of(nodes).get({ name: config.nodeName }, { signal })
    const patch = registrationPatch(existing, node)
    if (patch) await client.of(nodes).patch({ name: config.nodeName }, 'merge', patch, { signal })
    return undefined
  }
}

type FactDeps = Pick<NodeManagerDeps, 'pressure' | 'health' | 'shutdownProblem'>

async function factsOf({ runtime, resources, machineInfo, clock }: NodeContext, { pressure, health, shutdownProblem }: FactDeps): Promise<NodeFacts> {
  const [problems, images] = await Promise.all([health.problems(), runtime.listImages().catch(() => [])])
  return {
    machine: machineInfo,
    runtime: health.version(),
    runtimeStatus: health.status(),
    problems: [...problems, shutdownProblem()].filter((problem) => problem !== undefined),
    images,
    pressure: pressure(),
    nowMs: clock.now(),
    capacity: resources.capacity(),
    allocatable: resources.allocatable(),
  }
}

/** The API server leaves an empty list out: so does this, unless the list is to be emptied. */
function volumesInUse(before: Frozen<NodeStatus>, inUse: ReportedVolumes): Pick<NodeStatus, 'volumesInUse'> {
  const names = inUse.names(before.volumesInUse ?? [])
  return names.length > 0 || before.volumesInUse?.length ? { volumesInUse: names } : {}
}

/** Tries until it succeeds or is aborted. */
async function untilRegistered({ clock, config, log }: NodeContext, register: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      return await register(signal)
    } catch (error) {
      log.v(1).info('Unable to register node with API server', { node: config.nodeName, error: messageOf(error) })
      await clock.sleep(retryMs, signal).catch(() => {})
    }
  }
}

/** Sends what changed of the status, conditions by their type: others may own some of them. */
async function patchStatus({ client, config }: NodeContext, before: Frozen<NodeStatus>, after: NodeStatus, signal: AbortSignal): Promise<void> {
  const changed = Object.entries(after).filter(([key, value]) => key !== 'addresses' && !equal((before as Record<string, unknown>)[key], value))
  const addresses = equal(before.addresses, after.addresses) ? {} : { addresses: [{ $patch: 'replace' }, ...(after.addresses ?? [])] }
  const status = { ...Object.fromEntries(changed), ...addresses }
  await client.of(nodes).patch({ name: config.nodeName }, 'strategic', { status }, { subresource: 'status', signal })
}

const statusIsNow = (nodeName: string, reason: string) => `Node ${nodeName} status is now: ${reason}`

type NodeEvent = readonly [reason: string, message: string, type: 'Normal' | 'Warning']

/** The events about a new status. */
function nodeEvents(nodeName: string, before: Frozen<NodeStatus>, after: NodeStatus): NodeEvent[] {
  const changes = transitions(before.conditions, after.conditions).map((reason): NodeEvent => [reason, statusIsNow(nodeName, reason), 'Normal'])
  const bootID = after.nodeInfo?.bootID
  const rebooted = before.nodeInfo?.bootID && before.nodeInfo.bootID !== bootID
  return rebooted ? [['Rebooted', `Node ${nodeName} has been rebooted, boot id: ${bootID}`, 'Warning'], ...changes] : changes
}

interface Chore {
  readonly name: string
  readonly firstInMs: number
  /** The pause after the task succeeded. */
  nextInMs(): number
  /** Rung when it is to be done before the period is over. */
  readonly bell: WakeUp
  work(signal: AbortSignal): Promise<void>
}

/** Repeats a task, sooner after a failure. `register` creates the Node again after it was deleted. */
function repeater({ clock, config, log }: NodeContext, register: (signal: AbortSignal) => Promise<void>) {
  return async ({ name, firstInMs, nextInMs, bell, work }: Chore, signal: AbortSignal, until: AbortSignal): Promise<void> => {
    const pause = async (ms: number) => {
      const timer = clock.timer(ms, bell.ring)
      await bell.wait()
      timer.cancel()
    }
    if (until.aborted) return
    // One listener for all pauses: thousands of nodes in a process pause a thousand times a second.
    until.addEventListener('abort', bell.ring, { once: true })
    if (firstInMs > 0) await pause(firstInMs)
    while (!until.aborted) {
      let waitMs: number
      try {
        await work(signal)
        waitMs = nextInMs()
      } catch (error) {
        if (signal.aborted) return
        waitMs = Math.min(nextInMs(), retryMs)
        log.v(1).info(`${name} failed, will retry`, { node: config.nodeName, error: messageOf(error) })
        if (isStatus(error, 'NotFound')) await register(signal).catch(() => {})
      }
      await pause(waitMs)
    }
  }
}

/** Creates an object. @returns false when it is there already */
async function unlessThere(create: () => Promise<void>): Promise<boolean> {
  try {
    await create()
    return true
  } catch (error) {
    if (isStatus(error, 'AlreadyExists')) return false
    throw error
  }
}

/** Renews the node's Lease, creating it when it is not there. */
function leaseRenewer({ client, clock, config }: NodeContext, memory: NodeMemory): (signal: AbortSignal) => Promise<void> {
  return async (signal) => {
    const renewTime = formatMicroTime(clock.now())
    const ref = { namespace: leaseNamespace, name: config.nodeName }
    const spec = { holderIdentity: config.nodeName, leaseDurationSeconds: config.nodeLeaseDurationSeconds, renewTime }
    const create = async (uid = '') => {
      const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: config.nodeName, uid }]
      const lease: Lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { ...ref, ownerReferences }, spec }
      memory.lease = await client.of(leases).create(lease, { signal })
    }
    const update = async () => {
      try {
        const lease = memory.lease ?? (await client.of(leases).get(ref, { signal }))
        memory.lease = await client.of(leases).update({ ...lease, spec: { ...lease.spec, ...spec } }, { signal })
      } catch (error) {
        memory.lease = undefined
        if (!isStatus(error, 'NotFound')) throw error
        const node = await client.of(nodes).get({ name: config.nodeName }, { signal })
        await create(node.metadata.uid)
      }
    }
    // A new Node has no Lease, unless one of an earlier Node of its name is left: it is not asked for.
    const isNew = memory.createdUid !== undefined && memory.renewedAtMs === undefined
    if (!isNew || !(await unlessThere(() => create(memory.createdUid)))) await update()
    memory.renewedAtMs = clock.monotonicMs()
  }
}
