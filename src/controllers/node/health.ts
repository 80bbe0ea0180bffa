/**
 * What a node's heartbeats and conditions mean (L3): when silence makes it Unknown, and which taints it must carry. Pure.
 * Upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go (v1.36).
 */
import type { Lease } from '#api/gen/types/coordination.v1'
import type { Node, NodeCondition, Taint } from '#api/gen/types/core.v1'
import { taintsMatch } from '#api/helpers/taints'
import { findCondition } from '#api/machinery/conditions'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import { formatTime } from '#base/time'

/** The observed state of a node, with times of the controller's own clock: the node's may differ. */
export interface NodeHealth {
  readonly probeMs: number
  readonly conditions: readonly Frozen<NodeCondition>[]
  readonly renewTime: string | undefined
}

export interface NodeHealthOptions {
  readonly gracePeriodMs: number
  readonly startupGracePeriodMs: number
}

/** Takes in the node and its lease as they are now; any sign of life moves probeMs. */
export function observeNode(before: NodeHealth | undefined, node: Frozen<Node>, lease: Frozen<Lease> | undefined, nowMs: number): NodeHealth {
  const conditions = node.status?.conditions ?? []
  const renewTime = lease?.spec?.renewTime
  if (!before) return { probeMs: nowMs, conditions, renewTime }
  const heartbeat = (list: readonly Frozen<NodeCondition>[]) => findCondition(list, 'Ready')?.lastHeartbeatTime
  const alive = heartbeat(conditions) !== heartbeat(before.conditions) || (renewTime !== undefined && renewTime !== before.renewTime)
  return { probeMs: alive ? nowMs : before.probeMs, conditions, renewTime }
}

/** Until then silence is none. */
function silentAfterMs(node: Frozen<Node>, health: NodeHealth, { gracePeriodMs, startupGracePeriodMs }: NodeHealthOptions): number {
  return health.probeMs + (findCondition(node.status?.conditions, 'Ready') ? gracePeriodMs : startupGracePeriodMs)
}

/** Milliseconds until the node exceeds its grace period; Infinity when its conditions are Unknown already; 0 for a node that was never seen. */
export function msUntilSilent(node: Frozen<Node>, health: NodeHealth | undefined, options: NodeHealthOptions, nowMs: number): number {
  if (!health) return 0
  const conditions = node.status?.conditions
  if (watchedConditions.every((type) => findCondition(conditions, type)?.status === 'Unknown')) return Number.POSITIVE_INFINITY
  return Math.max(0, silentAfterMs(node, health, options) + 1 - nowMs)
}

const watchedConditions = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure']

/** The conditions of a node that has been silent too long; undefined when there is nothing to change. */
export function silentConditions(node: Frozen<Node>, health: NodeHealth, options: NodeHealthOptions, nowMs: number): NodeCondition[] | undefined {
  const conditions = node.status?.conditions ?? []
  if (nowMs <= silentAfterMs(node, health, options)) return undefined
  const now = formatTime(nowMs)
  const after = conditions.map((condition): NodeCondition => {
    if (!watchedConditions.includes(condition.type) || condition.status === 'Unknown') return { ...condition }
    return { ...condition, status: 'Unknown', reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.', lastTransitionTime: now }
  })
  for (const type of watchedConditions) {
    if (findCondition(after, type)) continue
    const reason = 'NodeStatusNeverUpdated'
    const message = 'Kubelet never posted node status.'
    after.push({ type, status: 'Unknown', reason, message, lastHeartbeatTime: node.metadata.creationTimestamp, lastTransitionTime: now })
  }
  return semanticEqual(after, conditions) ? undefined : after
}

const notReady = 'node.kubernetes.io/not-ready'
const unreachable = 'node.kubernetes.io/unreachable'
const unschedulable = 'node.kubernetes.io/unschedulable'
const taintOfCondition: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Ready: { False: notReady, Unknown: unreachable },
  MemoryPressure: { True: 'node.kubernetes.io/memory-pressure' },
  DiskPressure: { True: 'node.kubernetes.io/disk-pressure' },
  NetworkUnavailable: { True: 'node.kubernetes.io/network-unavailable' },
  PIDPressure: { True: 'node.kubernetes.io/pid-pressure' },
}
const ownNoSchedule = new Set([...Object.values(taintOfCondition).flatMap((byStatus) => Object.values(byStatus)), unschedulable])

/** Whether pods are being evicted from the node for its silence or its kubelet's word. */
export function hasEvictingTaint(node: Frozen<Node>): boolean {
  return node.spec.taints?.some(({ key, effect }) => effect === 'NoExecute' && (key === notReady || key === unreachable)) === true
}

/** Older names of labels that follow the newer ones. */
const olderLabels: Readonly<Record<string, string>> = { 'kubernetes.io/os': 'beta.kubernetes.io/os', 'kubernetes.io/arch': 'beta.kubernetes.io/arch' }

/** The labels that the node lacks or has wrong; undefined: none. */
export function wantedLabels({ metadata: { labels = {} } }: Frozen<Node>): Record<string, string> | undefined {
  const wrong = Object.entries(olderLabels).filter(([label, older]) => labels[label] !== undefined && labels[label] !== labels[older])
  return wrong.length === 0 ? undefined : Object.fromEntries(wrong.map(([label, older]) => [older, labels[label] ?? '']))
}

/**
 * The taints that the node should have; undefined when it has them.
 * @param evicting false while every node is out, when the fault is more likely ours, and until it is this node's turn.
 */
export function wantedTaints(node: Frozen<Node>, evicting: boolean, nowMs: number): Taint[] | undefined {
  const there = node.spec.taints ?? []
  const conditions = node.status?.conditions ?? []
  const wanted: Taint[] = []
  for (const [type, byStatus] of Object.entries(taintOfCondition)) {
    const key = byStatus[findCondition(conditions, type)?.status ?? '']
    if (key !== undefined) wanted.push({ key, effect: 'NoSchedule' })
  }
  if (node.spec.unschedulable) wanted.push({ key: unschedulable, effect: 'NoSchedule' })
  const ready = findCondition(conditions, 'Ready')?.status
  if (evicting && ready === 'False') wanted.push({ key: notReady, effect: 'NoExecute' })
  if (evicting && ready === 'Unknown') wanted.push({ key: unreachable, effect: 'NoExecute' })
  const isOwn = (taint: Frozen<Taint>) =>
    taint.effect === 'NoSchedule' ? ownNoSchedule.has(taint.key) : taint.effect === 'NoExecute' && (taint.key === notReady || taint.key === unreachable)
  const kept = there.filter((taint) => !isOwn(taint) || wanted.some((one) => taintsMatch(one, taint)))
  const missing = wanted.filter((one) => !there.some((taint) => taintsMatch(one, taint)))
  if (missing.length === 0 && kept.length === there.length) return undefined
  return [...kept.map((taint) => ({ ...taint })), ...missing.map((taint) => ({ ...taint, timeAdded: formatTime(nowMs) }))]
}
