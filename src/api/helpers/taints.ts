/** Taints and tolerations (L1). Upstream: component-helpers/scheduling/corev1 helpers.go, api/core/v1 toleration.go (v1.36). */
import type { Taint, Toleration } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

/** Whether one toleration covers the taint. An empty key with Exists covers all; an empty effect covers every effect. */
export function tolerationToleratesTaint(toleration: Frozen<Toleration>, taint: Frozen<Taint>): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false
  if (toleration.key && toleration.key !== taint.key) return false
  switch (toleration.operator || 'Equal') {
    case 'Equal':
      return (toleration.value ?? '') === (taint.value ?? '')
    case 'Exists':
      return true
    case 'Lt':
    case 'Gt':
      return comparesTo(toleration, taint)
    default:
      return false
  }
}

export function tolerationsTolerateTaint(tolerations: readonly Frozen<Toleration>[] | undefined, taint: Frozen<Taint>): boolean {
  return tolerations?.some((toleration) => tolerationToleratesTaint(toleration, taint)) ?? false
}

/** The first taint that nothing tolerates, of those that `counts` lets count. */
export function findUntoleratedTaint(
  taints: readonly Frozen<Taint>[] | undefined,
  tolerations: readonly Frozen<Toleration>[] | undefined,
  counts: (taint: Frozen<Taint>) => boolean = () => true,
): Frozen<Taint> | undefined {
  return taints?.find((taint) => counts(taint) && !tolerationsTolerateTaint(tolerations, taint))
}

/** Same key and effect: what makes a taint unique on a node. */
export function taintsMatch(a: Frozen<Taint>, b: Frozen<Taint>): boolean {
  return a.key === b.key && a.effect === b.effect
}

function comparesTo(toleration: Frozen<Toleration>, taint: Frozen<Taint>): boolean {
  const [wanted, actual] = [toleration.value ?? '', taint.value ?? '']
  if (!/^-?\d+$/.test(wanted) || !/^-?\d+$/.test(actual)) return false
  return toleration.operator === 'Lt' ? BigInt(actual) < BigInt(wanted) : BigInt(actual) > BigInt(wanted)
}
