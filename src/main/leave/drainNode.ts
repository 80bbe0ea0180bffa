/**
 * Evicts the pods of a node that leaves (L5): new ones stay away, PodDisruptionBudgets decide how fast the present ones go. What the node's machine makes itself, and
 * what a DaemonSet would make again at once, stays. Upstream: kubectl drain --ignore-daemonsets --delete-emptydir-data --force.
 */
import type { Pod } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { CommandError } from '#cli/exitCodes'
import { nodes, pods } from '#client/builtIn'
import type { Client } from '#client/client'
import { listAll } from '#client/listAll'

const pollMs = 2_000
const mostNamed = 10
const mirrorAnnotation = 'kubernetes.io/config.mirror'

/** The pods that a drain waits for. */
export function leavingPods(all: readonly Frozen<Pod>[]): Frozen<Pod>[] {
  return all.filter(({ metadata }) => {
    if (metadata.annotations && Object.hasOwn(metadata.annotations, mirrorAnnotation)) return false
    return metadata.ownerReferences?.find(({ controller }) => controller)?.kind !== 'DaemonSet'
  })
}

/** @returns how many pods were evicted. @throws CommandError timeout when some are still there: the node stays cordoned */
export async function drainNode(client: Client, clock: Clock, node: string, timeoutMs: number, signal: AbortSignal): Promise<number> {
  await client.of(nodes).patch({ name: node }, 'merge', { spec: { unschedulable: true } }, { signal })
  const deadline = clock.monotonicMs() + timeoutMs
  const evicted = new Set<string>()
  for (;;) {
    const { items } = await listAll(client.of(pods), { fieldSelector: `spec.nodeName=${node}`, signal })
    const left = leavingPods(items)
    if (left.length === 0) return evicted.size
    if (clock.monotonicMs() >= deadline) throw stillThere(node, left, timeoutMs)
    for (const pod of left) if (!pod.metadata.deletionTimestamp && (await evict(client, pod, signal))) evicted.add(pod.metadata.uid ?? '')
    await clock.sleep(pollMs, signal)
  }
}

/** False while a PodDisruptionBudget allows no eviction. */
async function evict(client: Client, { metadata }: Frozen<Pod>, signal: AbortSignal): Promise<boolean> {
  const { namespace, name = '', uid } = metadata
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name }, deleteOptions: { preconditions: { uid } } }
  try {
    await client.of(pods).createSubresource({ namespace, name }, 'eviction', body, { signal })
    return true
  } catch (error) {
    if (isStatus(error, 'TooManyRequests')) return false
    if (isStatus(error, 'NotFound') || isStatus(error, 'Conflict')) return true
    throw error
  }
}

function stillThere(node: string, left: readonly Frozen<Pod>[], timeoutMs: number): CommandError {
  const more = left.length > mostNamed ? [`and ${left.length - mostNamed} more`] : []
  return new CommandError('timeout', `${left.length} pods of node ${node} are still there after ${timeoutMs / 1000} s`, {
    details: [...left.slice(0, mostNamed).map(keyOf), ...more],
    hint: 'nothing was removed, and the node takes no new pods; skiff leave without --drain leaves with the pods, kubectl uncordon undoes it',
  })
}
