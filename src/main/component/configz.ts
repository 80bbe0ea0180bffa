/** Configuration as /configz shows it (L5, pure): upstream's names of fields, which begin with capitals there, and durations in Go's notation. */
import { formatDuration } from '#api/machinery/duration'
import { bareMap } from '#base/bareMap'

const capitals: Readonly<Record<string, string>> = bareMap({ qps: 'QPS' })

/** Members that end in Ms become durations without it. What is undefined is left out. */
export function configzOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(configzOf)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => {
      if (member === undefined) return []
      const isDuration = name.endsWith('Ms') && typeof member === 'number'
      const short = isDuration ? name.slice(0, -2) : name
      return [[capitals[short] ?? `${short.charAt(0).toUpperCase()}${short.slice(1)}`, isDuration ? formatDuration(member) : configzOf(member)]]
    }),
  )
}
