/**
 * The last scheduling decision about each pod (L3), kept for readers; the oldest are dropped for new ones.
 * Keeping one costs no computation: a decision is stored as the cycle left it, and put into words when it is read.
 */
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { NodeRefusals } from './framework/nodeRefusals.ts'
import type { PluginScore } from './schedulePod.ts'

export interface PlacedDecision {
  readonly atMs: number
  readonly nodeName: string
  readonly evaluatedNodes: number
  readonly feasibleNodes: number
  /** What each plugin gave the winner, weight included; empty when only one node fitted. */
  readonly scores: readonly PluginScore[]
}

export interface RefusedDecision {
  readonly atMs: number
  readonly message: string
  readonly totalNodes: number
  readonly evaluatedNodes: number
  readonly refusals: NodeRefusals
  readonly preFilterMessage: string | undefined
  /** The plugins whose events bring the pod back. */
  readonly refusedBy: readonly string[]
  /** The node that preemption makes free. */
  readonly nominatedNodeName: string | undefined
}

/** Both where a pod was refused first and placed later: the way there is part of the answer. */
export interface PodDecisions {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly attempts: number
  readonly placed?: PlacedDecision | undefined
  readonly refused?: RefusedDecision | undefined
}

export interface NodeReason {
  readonly node: string
  readonly plugin: string
  readonly reasons: readonly string[]
}

export interface DecisionLog {
  placed(pod: Frozen<Pod>, decision: PlacedDecision): void
  refused(pod: Frozen<Pod>, decision: RefusedDecision): void
  forget(uid: string): void
  of(uid: string): PodDecisions | undefined
  /** By name: the last of several pods of that name. */
  find(namespace: string, name: string): PodDecisions | undefined
}

const defaultMaxPods = 5000
/** Refusals of single nodes kept over all pods: what memory is really spent on. */
const defaultMaxNodeReasons = 200_000

/** The log of one scheduler: `maxPods` pods at most, and fewer when their refusals name more nodes than `maxNodeReasons` together. */
export function createDecisionLog({ maxPods = defaultMaxPods, maxNodeReasons = defaultMaxNodeReasons } = {}): DecisionLog {
  // In the order of their last decision: the first goes first.
  const byUid = new Map<string, PodDecisions>()
  let nodeReasons = 0

  function forget(uid: string): void {
    const there = byUid.get(uid)
    if (!there) return
    nodeReasons -= there.refused?.refusals.size ?? 0
    byUid.delete(uid)
  }

  function put({ metadata: { namespace = '', name = '', uid = '' } }: Frozen<Pod>, decision: Pick<PodDecisions, 'placed' | 'refused'>): void {
    const before = byUid.get(uid)
    forget(uid)
    const now: PodDecisions = { ...before, namespace, name, uid, attempts: (before?.attempts ?? 0) + 1, ...decision }
    byUid.set(uid, now)
    nodeReasons += now.refused?.refusals.size ?? 0
    for (const oldest of byUid.keys()) {
      if ((byUid.size <= maxPods && nodeReasons <= maxNodeReasons) || oldest === uid) break
      forget(oldest)
    }
  }

  return {
    placed: (pod, placed) => put(pod, { placed }),
    refused: (pod, refused) => put(pod, { refused }),
    forget,
    of: (uid) => byUid.get(uid),
    find: (namespace, name) => {
      let found: PodDecisions | undefined
      for (const decisions of byUid.values()) if (decisions.name === name && decisions.namespace === namespace) found = decisions
      return found
    },
  }
}

/** Node by node, what each said: at most `limit` of them. */
export function nodeReasons({ refusals }: RefusedDecision, limit = Number.POSITIVE_INFINITY): NodeReason[] {
  const found: NodeReason[] = []
  for (const [node, { refusal, plugin }] of refusals.entries()) {
    if (found.length >= limit) break
    found.push({ node, plugin, reasons: refusal.reasons })
  }
  return found
}
