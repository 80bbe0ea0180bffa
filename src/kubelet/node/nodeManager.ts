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
import { type Mirror, mirror } from '../core/listWatch.ts'
import { initialNode, type NodeFacts, nodeStatus, registrationPatch, statusChanged, transitions } from './nodeStatus.ts'
import type { RuntimeHealth } from './runtimeHealth.ts'
import { createStartupMetrics } from './startupMetrics.ts'

export interface NodeManager {
  /** Registers, then renews and reports until aborted. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves once the node is registered. */
  readonly registered: Promise<void>
  /** The node as the API last had it; undefined before it was seen. */
  node(): Frozen<Node> | undefined
  /** A part of the status has changed: reports it soon. */
  refresh(): void
}

const leaseNamespace = 'kube-node-lease'
const retryMs = 1_000

export interface NodeManagerDeps {
  pressure(): NodeFacts['pressure']
  /** Health of the container runtime. */
  readonly health: RuntimeHealth
  shutdownProblem(): string | undefined
  /** Called with the Node when it is first seen, and whenever it changes. */
  onNode(node: Frozen<Node>): void
}

export function createNodeManager(context: KubeletContext, { pressure, health, shutdownProblem, onNode }: NodeManagerDeps): NodeManager {
  const { client, clock, config, runtime } = context
  let markRegistered = () => {}
  const registered = new Promise<void>((resolve) => {
    markRegistered = resolve
  })
  const startup = createStartupMetrics(context, context.host ? uptime() * 1000 : undefined)
  let reportedAtMs = 0
  let nodeUid = config.nodeName

  const facts = async (): Promise<NodeFacts> => {
    const [problems, images] = await Promise.all([health.problems(), runtime.listImages().catch(() => [])])
    const resources = context.resources
    return {
      machine: context.machineInfo,
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

  const event = (reason: string, message: string, type: 'Normal' | 'Warning' = 'Normal') =>
    context.recorder.event({ kind: 'Node', name: config.nodeName, uid: nodeUid }, type, reason, message)

  const statusIsNow = (reason: string) => `Node ${config.nodeName} status is now: ${reason}`

  const register = async (signal: AbortSignal): Promise<void> => {
    if (!config.registerNode) return markRegistered()
    const now = await facts()
    const node = initialNode(nodeStatus(undefined, now, config), now.machine, config)
    startup.registering()
    try {
      await client.of(nodes).create(node, { signal })
      startup.registeredNew()
      const pressures = node.status.conditions?.filter(({ type }) => type !== 'Ready')
      for (const reason of transitions(undefined, pressures)) event(reason, statusIsNow(reason))
    } catch (error) {
      if (!isStatus(error, 'AlreadyExists')) throw error
      const existing = await client.of(nodes).get({ name: config.nodeName }, { signal })
      const patch = registrationPatch(existing, node)
      if (patch) await client.of(nodes).patch({ name: config.nodeName }, 'merge', patch, { signal })
    }
    markRegistered()
  }

  let own: Mirror<Node> | undefined
  let wasUnschedulable: boolean | undefined
  /** Controllers write into the Node too: its pod range is set soon after the registration. */
  const noticed = (node: Frozen<Node>) => {
    nodeUid = node.metadata.uid ?? nodeUid
    const unschedulable = node.spec.unschedulable ?? false
    const reason = unschedulable ? 'NodeNotSchedulable' : 'NodeSchedulable'
    if (wasUnschedulable === !unschedulable) event(reason, statusIsNow(reason))
    wasUnschedulable = unschedulable
    if (node.spec.podCIDR) runtime.updatePodCidr(node.spec.podCIDR)
    onNode(node)
  }

  const report = async (signal: AbortSignal): Promise<void> => {
    const node: Frozen<Node> = own?.get(config.nodeName) ?? (await client.of(nodes).get({ name: config.nodeName }, { resourceVersion: '0', signal }))
    const after = nodeStatus(node.status, await facts(), config)
    const due = clock.now() - reportedAtMs >= config.nodeStatusReportFrequencyMs
    if (!due && !statusChanged(node.status, after)) return
    await patchStatus(context, node.status, after, signal)
    reportedAtMs = clock.now()
    if (after.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')) startup.ready()
    for (const [reason, message, type] of nodeEvents(config.nodeName, node.status, after)) event(reason, message, type)
  }

  const renew = leaseRenewer(context)
  const repeat = repeater(context, register)
  const statusBell = createWakeUp()

  return {
    registered,
    node: () => own?.get(config.nodeName),
    refresh: statusBell.ring,
    run: async (signal) => {
      await untilRegistered(context, register, signal)
      if (signal.aborted) return
      const followed = mirror(client.of(nodes), { fieldSelector: `metadata.name=${config.nodeName}` }, context, signal, noticed)
      own = followed
      await Promise.race([followed.synced, followed.done])
      event('Starting', 'Starting kubelet.')
      // A runtime that reports changes need not be polled.
      const stopListening = runtime.onStatusChange?.(statusBell.ring)
      context.resources.onChange(statusBell.ring)
      const statusPeriodMs = runtime.onStatusChange ? config.nodeStatusReportFrequencyMs : config.nodeStatusUpdateFrequencyMs
      // Until the node is ready its status is computed more often, to notice a ready network soon.
      const becomeReady = async () => {
        while (!signal.aborted && !runtime.onStatusChange) {
          const ready = (await runtime.status().catch(() => undefined))?.conditions.every((condition) => condition.status)
          if (ready) return report(signal).catch(() => {})
          await clock.sleep(200, signal).catch(() => {})
        }
      }
      await Promise.all([
        followed.done,
        becomeReady(),
        repeat({ name: 'Renewing the node lease', periodMs: (config.nodeLeaseDurationSeconds * 1000) / 4, work: renew, bell: createWakeUp() }, signal),
        repeat({ name: 'Updating the node status', periodMs: statusPeriodMs, work: report, bell: statusBell }, signal),
      ])
      stopListening?.()
    },
  }
}

/** Tries until it succeeds or is aborted. */
async function untilRegistered({ clock, config, log }: KubeletContext, register: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
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
async function patchStatus({ client, config }: KubeletContext, before: Frozen<NodeStatus>, after: NodeStatus, signal: AbortSignal): Promise<void> {
  const changed = Object.entries(after).filter(([key, value]) => key !== 'addresses' && !equal((before as Record<string, unknown>)[key], value))
  const addresses = equal(before.addresses, after.addresses) ? {} : { addresses: [{ $patch: 'replace' }, ...(after.addresses ?? [])] }
  const status = { ...Object.fromEntries(changed), ...addresses }
  await client.of(nodes).patch({ name: config.nodeName }, 'strategic', { status }, { subresource: 'status', signal })
}

type NodeEvent = readonly [reason: string, message: string, type: 'Normal' | 'Warning']

/** The events about a new status. */
function nodeEvents(nodeName: string, before: Frozen<NodeStatus>, after: NodeStatus): NodeEvent[] {
  const changes = transitions(before.conditions, after.conditions).map((reason): NodeEvent => [reason, `Node ${nodeName} status is now: ${reason}`, 'Normal'])
  const bootID = after.nodeInfo?.bootID
  const rebooted = before.nodeInfo?.bootID && before.nodeInfo.bootID !== bootID
  return rebooted ? [['Rebooted', `Node ${nodeName} has been rebooted, boot id: ${bootID}`, 'Warning'], ...changes] : changes
}

interface Chore {
  readonly name: string
  readonly periodMs: number
  /** Rung when it is to be done before the period is over. */
  readonly bell: WakeUp
  work(signal: AbortSignal): Promise<void>
}

/** Repeats a task, sooner after a failure. `register` creates the Node again after it was deleted. */
function repeater({ clock, config, log }: KubeletContext, register: (signal: AbortSignal) => Promise<void>) {
  return async ({ name, periodMs, bell, work }: Chore, signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      let waitMs = periodMs
      try {
        await work(signal)
      } catch (error) {
        if (signal.aborted) return
        waitMs = Math.min(periodMs, retryMs)
        log.v(1).info(`${name} failed, will retry`, { node: config.nodeName, error: messageOf(error) })
        if (isStatus(error, 'NotFound')) await register(signal).catch(() => {})
      }
      const timer = clock.timer(waitMs, bell.ring)
      await bell.wait(signal)
      timer.cancel()
    }
  }
}

/** Renews the node's Lease, creating it when it is not there. */
function leaseRenewer({ client, clock, config }: KubeletContext): (signal: AbortSignal) => Promise<void> {
  let lease: Frozen<Lease> | undefined
  return async (signal) => {
    const renewTime = formatMicroTime(clock.now())
    const ref = { namespace: leaseNamespace, name: config.nodeName }
    const spec = { holderIdentity: config.nodeName, leaseDurationSeconds: config.nodeLeaseDurationSeconds, renewTime }
    try {
      if (!lease) lease = await client.of(leases).get(ref, { signal })
      lease = await client.of(leases).update({ ...lease, spec: { ...lease.spec, ...spec } }, { signal })
    } catch (error) {
      lease = undefined
      if (!isStatus(error, 'NotFound')) throw error
      const node = await client.of(nodes).get({ name: config.nodeName }, { signal })
      const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: config.nodeName, uid: node.metadata.uid ?? '' }]
      lease = await client.of(leases).create({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { ...ref, ownerReferences }, spec }, { signal })
    }
  }
}
