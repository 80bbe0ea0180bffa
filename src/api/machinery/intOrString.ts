/** Values that are a number or a text, often a percentage (L1). Upstream: apimachinery/pkg/util/intstr (v1.36). */

export type IntOrString = number | string

/** The number; a text's leading integer counts only when the whole text is one, else 0. */
export function intValue(value: IntOrString): number {
  if (typeof value === 'number') return value
  return /^[+-]?\d+$/.test(value) ? Number(value) : 0
}

/** The percentage as a number, without its sign; undefined when it is none. */
export function percentOf(value: IntOrString): number | undefined {
  return typeof value === 'string' && /^[+-]?\d+%$/.test(value) ? Number(value.slice(0, -1)) : undefined
}

/**
 * The value itself, or its percentage of `total`, rounded up or down.
 * @returns undefined when a text is no percentage
 */
export function scaledValue(value: IntOrString, total: number, roundUp: boolean): number | undefined {
  if (typeof value === 'number') return value
  const percent = percentOf(value)
  if (percent === undefined) return undefined
  return roundUp ? Math.ceil((percent * total) / 100) : Math.floor((percent * total) / 100)
}
