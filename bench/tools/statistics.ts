/** Medians and percentiles of small samples. */

/** The middle of the values, or the mean of the two in the middle; NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = ascending(values)
  const middle = sorted.length / 2
  if (sorted.length === 0) return Number.NaN
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The smallest value that at least `fraction` of all values do not exceed (nearest rank); NaN for none. */
export function percentile(values: readonly number[], fraction: number): number {
  const sorted = ascending(values)
  return sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] ?? Number.NaN
}

/** Three significant digits, without exponents. */
export function rounded(value: number): string {
  if (!Number.isFinite(value)) return '-'
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)))
}

function ascending(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b)
}
