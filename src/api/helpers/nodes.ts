/**
 * Questions about nodes (L1): readiness, and whether selectors and affinity terms fit them.
 * Upstream: component-helpers/scheduling/corev1/nodeaffinity, component-helpers/node/util (v1.36).
 */
import type { Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod } from '#api/gen/types/core.v1'
import { isConditionTrue } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'

/** Annotation of a simulated Node: its container runtime fails with this message, and its kubelet reports it as not ready. */
export const simulatedFailure = 'skiff.dev/simulated-failure'

export function isNodeReady(node: Frozen<Node>): boolean {
  return isConditionTrue(node.status?.conditions, 'Ready')
}

/** The first address of a type: InternalIP, Hostname, … */
export function nodeAddress(node: Frozen<Node>, type: string): string | undefined {
  return node.status?.addresses?.find((address) => address.type === type)?.address
}

/** Terms are alternatives; none of them means no node. */
export function nodeSelectorMatches(selector: Frozen<NodeSelector>, node: Frozen<Node>): boolean {
  return selector.nodeSelectorTerms.some((term) => nodeSelectorTermMatches(term, node))
}

/** All requirements of a term hold; an empty term matches nothing. */
export function nodeSelectorTermMatches(term: Frozen<NodeSelectorTerm>, node: Frozen<Node>): boolean {
  const expressions = term.matchExpressions ?? []
  const fields = term.matchFields ?? []
  if (expressions.length === 0 && fields.length === 0) return false
  const labels = node.metadata.labels ?? {}
  return (
    expressions.every((requirement) => holds(requirement, Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined)) &&
    fields.every((requirement) => holds(requirement, requirement.key === 'metadata.name' ? (node.metadata.name ?? '') : ''))
  )
}

/** nodeSelector and required node affinity together: where the pod may run at all. */
export function podMatchesNodeSelectorAndAffinity(pod: Frozen<Pod>, node: Frozen<Node>): boolean {
  const labels = node.metadata.labels ?? {}
  for (const [key, value] of Object.entries(pod.spec.nodeSelector ?? {})) if (labels[key] !== value) return false
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  return required ? nodeSelectorMatches(required, node) : true
}

function holds({ operator, values = [] }: Frozen<NodeSelectorRequirement>, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'Gt':
    case 'Lt': {
      const bound = values[0]
      if (value === undefined || bound === undefined || !/^-?\d+$/.test(value) || !/^-?\d+$/.test(bound)) return false
      return operator === 'Gt' ? BigInt(value) > BigInt(bound) : BigInt(value) < BigInt(bound)
    }
    default:
      return false
  }
}
