/** How tolerations include each other (L1). Upstream: kubernetes/pkg/util/tolerations (v1.36). */
import type { Toleration } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'

type Tolerations = readonly Frozen<Toleration>[]

/** Both lists in order, without what another of them includes; of equal ones the first stays. */
export function mergeTolerations(first: Tolerations = [], second: Tolerations = []): Tolerations {
  const all = [...first, ...second]
  const later = new WidestTolerations()
  const isIncludedLater = all.map(() => false)
  for (let index = all.length - 1; index >= 0; index--) {
    const one = all[index] as Frozen<Toleration>
    isIncludedLater[index] = later.including(one).some((other) => !semanticEqual(one, other))
    later.add(one)
  }
  const known = new WidestTolerations()
  return all.filter((one, index) => {
    if (isIncludedLater[index] || known.including(one).length > 0) return false
    known.add(one)
    return true
  })
}

/**
 * The tolerations of a list that no other one of the same key, operator, value and effect exceeds, at most two of each: one may be the very one that
 * is asked about. A pod may have tens of thousands of tolerations, too many to compare each with each.
 */
class WidestTolerations {
  readonly #groups = new Map<string, Frozen<Toleration>[]>()

  add(one: Frozen<Toleration>): void {
    const name = groupOf(one)
    const there = this.#groups.get(name)
    const widest = there?.[0]
    if (!widest || secondsOf(one) > secondsOf(widest)) this.#groups.set(name, [one])
    else if (there.length === 1 && secondsOf(one) === secondsOf(widest) && !semanticEqual(one, widest)) there.push(one)
  }

  /** The tolerations of the list that include the given one. */
  including(one: Frozen<Toleration>): Frozen<Toleration>[] {
    const { key = '', effect = '' } = one
    const groups = new Set([groupOf(one)])
    for (const wideEffect of ['', effect]) {
      groups.add(groupOf({ operator: 'Exists', effect: wideEffect }))
      groups.add(groupOf({ key, operator: 'Exists', effect: wideEffect }))
      groups.add(groupOf({ ...one, operator: one.operator ?? 'Equal', effect: wideEffect }))
    }
    return [...groups].flatMap((name) => this.#groups.get(name) ?? []).filter((wide) => includes(wide, one))
  }
}

/** What tolerations share that differ only in how long they hold. */
function groupOf({ key = '', operator = 'Equal', value = '', effect = '' }: Frozen<Toleration>): string {
  return JSON.stringify(operator === 'Exists' ? [key, operator, effect] : [key, operator, effect, value])
}

function secondsOf({ effect, tolerationSeconds }: Frozen<Toleration>): number {
  return effect === 'NoExecute' ? (tolerationSeconds ?? Number.POSITIVE_INFINITY) : 0
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
