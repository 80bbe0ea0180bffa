/**
 * Plans attachments and detachments of a node, and its volumesAttached (L3, pure). Nothing is detached while it is mounted, unless the node has
 * been silent for long or is said to be out of service. Upstream: pkg/controller/volume/attachdetach/reconciler/reconciler.go (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import type { VolumeAttachment } from '#api/gen/types/storage.v1'
import { isNodeReady } from '#api/helpers/nodes'
import type { Frozen } from '#api/machinery/meta'
import { inTreePluginOf, mayBeShared, type Wanted } from './attachable.ts'

const maxWaitForUnmountMs = 6 * 60_000
const outOfServiceTaint = 'node.kubernetes.io/out-of-service'

export interface NodeSituation {
  /** Undefined: the node is gone. */
  readonly node: Frozen<Node> | undefined
  readonly wanted: ReadonlyMap<string, Wanted>
  /** By unique name; undefined: the node's status speaks of it, but there is no attachment. */
  readonly attachments: ReadonlyMap<string, Frozen<VolumeAttachment> | undefined>
  /** Other nodes that have the volume. */
  readonly holders: (name: string) => readonly string[]
  /** For how long the volume has not been wanted any more. */
  readonly unwantedForMs: (name: string) => number
  readonly neverForce: boolean
}

export interface Detachment {
  readonly name: string
  readonly forced?: 'timeout' | 'out-of-service' | undefined
}

export interface NodePlan {
  readonly attach: readonly string[]
  readonly detach: readonly Detachment[]
  /** Wanted here, but other nodes have them. */
  readonly taken: readonly string[]
  /** What the node's status is to name. */
  readonly report: readonly string[]
  readonly lookAgainMs: number | undefined
}

export function planNode(situation: NodeSituation): NodePlan {
  const { wanted, attachments, holders } = situation
  const detach: Detachment[] = []
  let lookAgainMs: number | undefined
  for (const [name, attachment] of attachments) {
    if (wanted.has(name) || attachment?.metadata.deletionTimestamp) continue
    const verdict = detachment(name, situation)
    if ('waitMs' in verdict) lookAgainMs = Math.min(lookAgainMs ?? verdict.waitMs, verdict.waitMs)
    else detach.push(verdict)
  }
  const missing = [...wanted].filter(([name]) => !attachments.get(name))
  const taken = missing.filter(([name, { volume }]) => !mayBeShared(volume) && holders(name).length > 0).map(([name]) => name)
  const going = new Set(detach.map(({ name }) => name))
  const attach = missing.map(([name]) => name).filter((name) => !taken.includes(name))
  const there = [...attachments].filter(([name, one]) => one?.status?.attached && !one.metadata.deletionTimestamp && !going.has(name)).map(([name]) => name)
  // Where there is nothing to attach, the volume is attached by being reported.
  const report = [...there, ...attach.filter((name) => inTreePluginOf(name) !== undefined)].sort()
  return { attach, detach, taken, report, lookAgainMs }
}

function detachment(name: string, { node, unwantedForMs, neverForce }: NodeSituation): Detachment | { readonly waitMs: number } {
  const forMs = unwantedForMs(name)
  const isExpired = forMs > maxWaitForUnmountMs && !neverForce
  const isOutOfService = node?.spec?.taints?.some(({ key }) => key === outOfServiceTaint) ?? false
  // The mounts of a deleted node are unknown: assume that the volume is mounted.
  const isMounted = node ? (node.status?.volumesInUse?.includes(name) ?? false) : true
  const isHealthy = node !== undefined && isNodeReady(node)
  if (isMounted && !(isExpired && !isHealthy) && !isOutOfService) return { waitMs: Math.max(maxWaitForUnmountMs - forMs, 0) + 1 }
  if (!isExpired && !isOutOfService) return { name }
  return { name, forced: isExpired ? 'timeout' : 'out-of-service' }
}
