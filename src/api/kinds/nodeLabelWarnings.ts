/** Warnings about labels of nodes that have newer names, wherever a kind selects nodes (L1). Upstream: pkg/api/node/util.go (v1.36). */
import type { NodeSelectorTerm } from '#api/gen/types/core.v1'
import type { FieldPath } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'

const deprecatedLabels: ReadonlyMap<string, string> = new Map([
  ['beta.kubernetes.io/arch', 'deprecated since v1.14; use "kubernetes.io/arch" instead'],
  ['beta.kubernetes.io/os', 'deprecated since v1.14; use "kubernetes.io/os" instead'],
  ['failure-domain.beta.kubernetes.io/region', 'deprecated since v1.17; use "topology.kubernetes.io/region" instead'],
  ['failure-domain.beta.kubernetes.io/zone', 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'],
  ['beta.kubernetes.io/instance-type', 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'],
])

/** The warnings for one label key. @param named whether the text repeats the key, because the path does not contain it */
export function nodeLabelWarnings(key: string, path: FieldPath, named: boolean): string[] {
  const message = deprecatedLabels.get(key)
  return message === undefined ? [] : [`${path}: ${named ? `${key} is ` : ''}${message}`]
}

/** The warnings for the expressions of a term or of a label selector over nodes. */
export function nodeExpressionWarnings(expressions: Frozen<NodeSelectorTerm['matchExpressions']>, path: FieldPath): string[] {
  return (expressions ?? []).flatMap(({ key }, i) => nodeLabelWarnings(key, path.child('matchExpressions').index(i).child('key'), true))
}
