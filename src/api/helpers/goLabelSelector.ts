/** A LabelSelector as Go prints it (L1), which is how messages of upstream show one. Upstream: LabelSelector.String of apimachinery/pkg/apis/meta/v1 (v1.36). */
import type { LabelSelector } from '#api/gen/types/meta.v1'
import type { DeepReadonly } from '#base/frozen'

/** `nil` for an absent one, as where Go prints a pointer. */
export const goLabelSelectorPointer = (selector: DeepReadonly<LabelSelector> | undefined) => (selector ? goLabelSelector(selector) : 'nil')

export function goLabelSelector(selector: DeepReadonly<LabelSelector> | undefined): string {
  const labels = Object.entries(selector?.matchLabels ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}: ${value},`)
  const expressions = (selector?.matchExpressions ?? []).map(
    ({ key, operator, values }) => `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${(values ?? []).join(' ')}],},`,
  )
  return `&LabelSelector{MatchLabels:map[string]string{${labels.join('')}},MatchExpressions:[]LabelSelectorRequirement{${expressions.join('')}},}`
}
