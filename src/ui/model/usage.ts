/** What nodes and pods used over time (L4, pure): samples of metrics.k8s.io as series for charts, bounded in memory. */
import { quantityAsNumber } from '#api/machinery/quantity'
import { greatest } from '#base/extremes'

export const measured = ['cpu', 'memory'] as const
export type Measured = (typeof measured)[number]

interface Usage {
  readonly cpu?: string
  readonly memory?: string
}

export interface NodeMetrics {
  readonly metadata: { readonly name?: string; readonly namespace?: string }
  readonly usage?: Usage
  readonly containers?: readonly { readonly usage?: Usage }[]
}

export interface UsageSample {
  readonly atMs: number
  /** Cores and bytes, by name. */
  readonly values: ReadonlyMap<string, Readonly<Record<Measured, number>>>
}

/** A node's usage, or the sum of a pod's containers. */
export function sampleOf(items: readonly NodeMetrics[], atMs: number): UsageSample {
  const values = new Map<string, Record<Measured, number>>()
  for (const { metadata, usage, containers = [] } of items) {
    const parts = usage ? [usage] : containers.map((container) => container.usage ?? {})
    const sum = (resource: Measured) => parts.reduce((total, part) => total + quantityAsNumber(part[resource] ?? '0'), 0)
    values.set([metadata.namespace, metadata.name].filter(Boolean).join('/'), { cpu: sum('cpu'), memory: sum('memory') })
  }
  return { atMs, values }
}

const mostPoints = 300_000

/** With one more sample; the oldest are dropped beyond a limit of values. */
export function withSample(samples: readonly UsageSample[], next: UsageSample): UsageSample[] {
  const all = [...samples, next]
  let points = all.reduce((sum, { values }) => sum + values.size, 0)
  let first = 0
  for (; points > mostPoints && first < all.length - 1; first++) points -= all[first]?.values.size ?? 0
  return all.slice(first)
}

export interface Series {
  readonly name: string
  /** Null: it was not measured then. */
  readonly values: readonly (number | null)[]
}

export interface Chart {
  readonly atMs: readonly number[]
  readonly series: readonly Series[]
  /** How many are not drawn. */
  readonly left: number
}

/** The series that reached most within the range. @param sinceMs the first time */
export function chartOf(samples: readonly UsageSample[], resource: Measured, sinceMs: number, most: number): Chart {
  const shown = samples.filter(({ atMs }) => atMs >= sinceMs)
  const peaks = new Map<string, number>()
  for (const { values } of shown) for (const [name, value] of values) peaks.set(name, Math.max(peaks.get(name) ?? 0, value[resource]))
  const names = [...peaks].sort(([one, a], [other, b]) => b - a || (one < other ? -1 : 1)).map(([name]) => name)
  return {
    atMs: shown.map(({ atMs }) => atMs),
    series: names.slice(0, most).map((name) => ({ name, values: shown.map(({ values }) => values.get(name)?.[resource] ?? null) })),
    left: Math.max(0, names.length - most),
  }
}

export function usageText(resource: Measured, value: number): string {
  if (resource === 'cpu') return value < 1 ? `${Math.round(value * 1000)}m` : value.toFixed(2)
  const mib = value / 2 ** 20
  return mib < 1024 ? `${mib.toFixed(mib < 10 ? 1 : 0)} MiB` : `${(mib / 1024).toFixed(1)} GiB`
}

export const peakOf = ({ series }: Chart): number =>
  greatest(
    series.flatMap(({ values }) => values.map((value) => value ?? 0)),
    0,
  )
