/** The queues of controllers (L4, pure): what waits, what fails, and how long a reconcile takes, from two readings of the metrics. */
import { type Sample, sumBy } from './prometheus.ts'

export const queueFamilies = [
  ...['workqueue_depth', 'workqueue_adds_total', 'workqueue_retries_total', 'workqueue_unfinished_work_seconds', 'workqueue_longest_running_processor_seconds'],
  ...['workqueue_queue_duration_seconds_sum', 'workqueue_queue_duration_seconds_count'],
  ...['workqueue_work_duration_seconds_sum', 'workqueue_work_duration_seconds_count'],
]

export interface Reading {
  readonly atMs: number
  readonly samples: readonly Sample[]
}

export interface Queue {
  readonly name: string
  readonly depth: number
  /** Since the server started. */
  readonly reconciles: number
  readonly retries: number
  readonly reconcilesPerSecond: number
  readonly retriesPerSecond: number
  /** Averages since the reading before; where nothing happened meanwhile, since the start. Undefined: never. */
  readonly waitMs: number | undefined
  readonly workMs: number | undefined
  readonly longestSeconds: number
}

/** Busy queues first: those where something waits or fails, then by reconciles. */
export function queuesOf(now: Reading, before?: Reading): Queue[] {
  const seconds = before ? Math.max(0.001, (now.atMs - before.atMs) / 1000) : 0
  const read = (name: string) => ({ now: new Map(sumBy(now.samples, name, 'name')), before: new Map(sumBy(before?.samples ?? [], name, 'name')) })
  const families = new Map(queueFamilies.map((name) => [name, read(name)]))
  const value = (family: string, queue: string) => families.get(family)?.now.get(queue) ?? 0
  const grown = (family: string, queue: string) => Math.max(0, value(family, queue) - (families.get(family)?.before.get(queue) ?? 0))
  const average = (family: string, queue: string) => {
    const [sum, count] = [`${family}_sum`, `${family}_count`]
    const recent = before ? grown(count, queue) : 0
    if (recent > 0) return (1000 * grown(sum, queue)) / recent
    return value(count, queue) > 0 ? (1000 * value(sum, queue)) / value(count, queue) : undefined
  }
  const queues = [...(families.get('workqueue_depth')?.now.keys() ?? [])].map((name): Queue => {
    const work = 'workqueue_work_duration_seconds'
    return {
      ...{ name, depth: value('workqueue_depth', name), reconciles: value(`${work}_count`, name), retries: value('workqueue_retries_total', name) },
      reconcilesPerSecond: before ? grown(`${work}_count`, name) / seconds : 0,
      retriesPerSecond: before ? grown('workqueue_retries_total', name) / seconds : 0,
      ...{ waitMs: average('workqueue_queue_duration_seconds', name), workMs: average(work, name) },
      longestSeconds: value('workqueue_longest_running_processor_seconds', name),
    }
  })
  return queues.sort(
    (one, other) =>
      other.depth - one.depth || other.retriesPerSecond - one.retriesPerSecond || other.reconciles - one.reconciles || (one.name < other.name ? -1 : 1),
  )
}
