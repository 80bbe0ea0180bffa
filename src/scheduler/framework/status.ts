/**
 * Answers of scheduler plugins (L3): an expected "no" is a value, and its code says what the queue will do next.
 * Upstream: kube-scheduler/framework/interface.go Code (v1.36).
 */
export type Code =
  /** Preemption might help. */
  | 'Unschedulable'
  /** Nothing but a change of the cluster helps. */
  | 'UnschedulableAndUnresolvable'

export interface Refusal {
  readonly code: Code
  readonly reasons: readonly string[]
}

/** Undefined: yes. */
export type FilterResult = Refusal | undefined

/** The texts that tools match on, in one place. */
export const reasons = {
  nodeUnschedulable: 'node(s) were unschedulable',
  nodeName: "node(s) didn't match the requested node name",
  nodeAffinity: "node(s) didn't match Pod's node affinity/selector",
  nodePorts: "node(s) didn't have free ports for the requested pod ports",
  tooManyPods: 'Too many pods',
  insufficient: (resource: string) => `Insufficient ${resource}`,
  untoleratedTaint: (key: string, value: string) => `node(s) had untolerated taint {${key}: ${value}}`,
} as const

export function unschedulable(...texts: string[]): Refusal {
  return { code: 'Unschedulable', reasons: texts }
}

export function unresolvable(...texts: string[]): Refusal {
  return { code: 'UnschedulableAndUnresolvable', reasons: texts }
}

/**
 * Why no node fits: `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.`
 * Upstream: pkg/scheduler/framework/types.go FitError.
 */
export function fitMessage(totalNodes: number, refusals: Iterable<Refusal>, preFilterMessage?: string): string {
  if (totalNodes === 0) return 'no nodes available to schedule pods'
  const head = `0/${totalNodes} nodes are available:`
  if (preFilterMessage) return `${head} ${preFilterMessage}.`
  const counts = new Map<string, number>()
  for (const { reasons: texts } of refusals) for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  const parts = [...counts].map(([text, count]) => `${count} ${text}`).sort()
  return parts.length > 0 ? `${head} ${parts.join(', ')}.` : head
}
