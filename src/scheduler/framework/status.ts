/**
 * Answers of scheduler plugins (L3): an expected "no" is a value whose code decides what the queue does next. A failure is thrown.
 * Upstream: kube-scheduler/framework/interface.go Code, Status; pkg/scheduler/framework/types.go FitError (v1.36).
 */
export type Code =
  /** Preemption might help. */
  | 'Unschedulable'
  /** Nothing but a change of the cluster helps. */
  | 'UnschedulableAndUnresolvable'
  /** The plugin has begun something outside that has to end first: the pod is tried again without back-off when it has. */
  | 'Pending'

export interface Refusal {
  readonly code: Code
  readonly reasons: readonly string[]
}

/** Undefined: yes. */
export type Answer = Refusal | undefined
export type FilterResult = Answer

/** The texts that tools match on, in one place. */
export const reasons = {
  nodeUnschedulable: 'node(s) were unschedulable',
  nodeName: "node(s) didn't match the requested node name",
  nodeAffinity: "node(s) didn't match Pod's node affinity/selector",
  nodeAffinityConflict: 'pod affinity terms conflict',
  enforcedNodeAffinity: "node(s) didn't match scheduler-enforced node affinity",
  nodePorts: "node(s) didn't have free ports for the requested pod ports",
  topologySpread: "node(s) didn't match pod topology spread constraints",
  topologySpreadLabel: "node(s) didn't match pod topology spread constraints (missing required label)",
  podAffinity: "node(s) didn't match pod affinity rules",
  podAntiAffinity: "node(s) didn't match pod anti-affinity rules",
  existingAntiAffinity: "node(s) didn't satisfy existing pods anti-affinity rules",
  diskConflict: 'node(s) had no available disk',
  readWriteOncePod: 'node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode',
  maxVolumeCount: 'node(s) exceed max volume count',
  volumeZone: 'node(s) had no available volume zone',
  noVolumeToBind: "node(s) didn't find available persistent volumes to bind",
  volumeNodeAffinity: 'node(s) had volume node affinity conflict',
  notEnoughStorage: 'node(s) did not have enough free storage',
  boundVolumeMissing: 'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)',
  unboundImmediateClaims: 'pod has unbound immediate PersistentVolumeClaims',
  claimNotFound: (name: string) => `persistentvolumeclaim "${name}" not found`,
  volumeNotFound: (name: string) => `persistentvolume "${name}" not found`,
  storageClassNotFound: (name: string) => `storageclass.storage.k8s.io "${name}" not found`,
  declaredFeatures: "node(s) didn't match Pod's required features",
  tooManyPods: 'Too many pods',
  insufficient: (resource: string) => `Insufficient ${resource}`,
  untoleratedTaint: 'node(s) had untolerated taint(s)',
} as const

export function unschedulable(...texts: string[]): Refusal {
  return { code: 'Unschedulable', reasons: texts }
}

export function unresolvable(...texts: string[]): Refusal {
  return { code: 'UnschedulableAndUnresolvable', reasons: texts }
}

export function pending(...texts: string[]): Refusal {
  return { code: 'Pending', reasons: texts }
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'code' in value
}

export interface FitMessageParts {
  readonly totalNodes: number
  readonly refusals: Iterable<Refusal>
  /** What PreFilter said; then no node was looked at. */
  readonly preFilterMessage?: string | undefined
  /** What PostFilter said, preemption above all. */
  readonly postFilterMessage?: string | undefined
}

/** Why no node fits: `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. preemption: …` */
export function fitMessage({ totalNodes, refusals, preFilterMessage, postFilterMessage }: FitMessageParts): string {
  if (totalNodes === 0) return 'no nodes available to schedule pods'
  let text = `0/${totalNodes} nodes are available:`
  if (preFilterMessage) return suffixed(`${text} ${preFilterMessage}.`, postFilterMessage)
  const counts = new Map<string, number>()
  for (const { reasons: texts } of refusals) for (const one of texts) counts.set(one, (counts.get(one) ?? 0) + 1)
  const parts = [...counts].map(([one, count]) => `${count} ${one}`).sort()
  if (parts.length > 0) text += ` ${parts.join(', ')}.`
  return suffixed(text, postFilterMessage)
}

function suffixed(text: string, postFilterMessage: string | undefined): string {
  return postFilterMessage ? `${text} ${postFilterMessage}` : text
}
