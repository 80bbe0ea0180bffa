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

export interface RatioInterval {
  /** Geometric mean of the ratios. */
  readonly mean: number
  /** Bounds of its 95 % confidence interval. */
  readonly low: number
  readonly high: number
}

/** Two-sided 95 % quantiles of Student's t, by degrees of freedom from 1; later ones are close to the last. */
const studentT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086]

/** Ratios of pairs of measurements (the i-th of both lists belong together), on a logarithmic scale. @throws RangeError for fewer than two pairs */
export function ratioInterval(numerators: readonly number[], denominators: readonly number[]): RatioInterval {
  const count = Math.min(numerators.length, denominators.length)
  if (count < 2) throw new RangeError(`${count} pairs have no interval`)
  const logarithms = Array.from({ length: count }, (_, pair) => Math.log(numerators[pair]! / denominators[pair]!))
  const mean = logarithms.reduce((sum, each) => sum + each, 0) / count
  const variance = logarithms.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (count - 1)
  const half = (studentT[count - 2] ?? studentT.at(-1)!) * Math.sqrt(variance / count)
  return { mean: Math.exp(mean), low: Math.exp(mean - half), high: Math.exp(mean + half) }
}

/** Three significant digits, without exponents. */
export function rounded(value: number): string {
  if (!Number.isFinite(value)) return '-'
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)))
}

function ascending(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b)
}
