/** How tolerations include each other (L1). Upstream: kubernetes/pkg/util/tolerations (v1.36). */
import type { Toleration } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'

type Tolerations = readonly Frozen<Toleration>[]

/** Both lists in order, without what another of them includes; of equal ones the first stays. */
export function mergeTolerations(first: Tolerations = [], second: Tolerations = []): Tolerations {
  const all = [...first, ...second]
  const merged: Frozen<Toleration>[] = []
  for (const [index, one] of all.entries()) {
    const isKnown = merged.some((other) => includes(other, one))
    const comes = all.slice(index + 1).some((other) => !semanticEqual(one, other) && includes(other, one))
    if (!isKnown && !comes) merged.push(one)
  }
  return merged
}

/** Whether every toleration is one that the list allows; an empty list allows all. */
export function areAllowed(tolerations: Tolerations, allowed: Tolerations): boolean {
  return allowed.length === 0 || tolerations.every((one) => allowed.some((other) => includes(other, one)))
}

/** Whether `wide` tolerates all that `one` does. */
function includes(wide: Frozen<Toleration>, one: Frozen<Toleration>): boolean {
  if (semanticEqual(wide, one)) return true
  const coversAllKeys = !wide.key && wide.operator === 'Exists'
  if (!coversAllKeys && (wide.key ?? '') !== (one.key ?? '')) return false
  if (wide.effect && wide.effect !== one.effect) return false
  if (wide.effect === 'NoExecute' && wide.tolerationSeconds !== undefined) {
    if (one.tolerationSeconds === undefined || one.tolerationSeconds > wide.tolerationSeconds) return false
  }
  if (wide.operator === 'Exists') return true
  return (wide.operator ?? 'Equal') === 'Equal' && (one.operator ?? 'Equal') === 'Equal' && (wide.value ?? '') === (one.value ?? '')
}
