/**
 * Metrics of flow control (L3): the series of each flow schema and priority level are looked up once and kept.
 * Upstream: apiserver/pkg/util/flowcontrol/metrics.
 */
import type { CounterSeries, GaugeSeries, HistogramSeries, Metrics } from '#base/metrics'

/** Series for the requests of one flow schema. */
export interface SchemaMetrics {
  readonly dispatched: CounterSeries
  readonly inQueueRequests: GaugeSeries
  readonly inQueueSeats: GaugeSeries
  readonly executingRequests: GaugeSeries
  readonly executingSeats: GaugeSeries
  readonly queueLength: HistogramSeries
  readonly estimatedSeats: HistogramSeries
  readonly waitedAndRan: HistogramSeries
  readonly waitedInVain: HistogramSeries
  readonly executionSeconds: HistogramSeries
  readonly watchExecutionSeconds: HistogramSeries
  readonly noAccommodation: CounterSeries
  /** Number of watches that get a write's event. */
  readonly watchCount: HistogramSeries
  rejected(reason: RejectReason): void
}

export type RejectReason = 'queue-full' | 'concurrency-limit' | 'time-out'

export interface LevelMetrics {
  readonly currentR: GaugeSeries
  readonly dispatchR: GaugeSeries
  readonly latestS: GaugeSeries
  /** The least and most virtual time of the queues with waiting requests, and the same less the work being executed. */
  bounds(least: number, most: number, leastDiscounted: number, mostDiscounted: number): void
  /** Demand as a fraction of the level's limit. */
  readonly demandRatio: HistogramSeries
  readonly seatRatio: HistogramSeries
  readonly executingRatio: HistogramSeries
  /** Waiting requests as a fraction of the queues' capacity. */
  readonly waitingRatio: HistogramSeries
  limits(nominal: number, lower: number, upper: number): void
  demand(seen: { highWatermark: number; average: number; deviation: number; smoothed: number; target: number | undefined }, currentLimit: number): void
}

export interface FlowControlMetrics {
  schema(flowSchema: string, priorityLevel: string): SchemaMetrics
  level(priorityLevel: string): LevelMetrics
  fairFraction(value: number): void
}

const durationBuckets = [0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30]
const lengthBuckets = [0, 10, 25, 50, 100, 250, 500, 1000]
const seatBuckets = [1, 2, 4, 8, 16, 32, 64, 100]
const watchBuckets = [0, 1, 10, 100, 1000, 10_000]
const demandBuckets = [0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6]
const utilizationBuckets = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1]
const requestBuckets = [0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1]

export function flowControlMetrics(metrics: Metrics): FlowControlMetrics {
  const schema = schemaMetrics(metrics)
  const level = levelMetrics(metrics)
  const fairFraction = metrics.gauge({
    name: 'apiserver_flowcontrol_seat_fair_frac',
    help: "The fraction of the server's seats that each level gets that can use them.",
  })
  const kept = new Map<string, SchemaMetrics>()
  return {
    schema(flowSchema, priorityLevel) {
      const key = `${priorityLevel}/${flowSchema}`
      const known = kept.get(key) ?? schema({ priority_level: priorityLevel, flow_schema: flowSchema })
      kept.set(key, known)
      return known
    },
    level,
    fairFraction: (value) => fairFraction.set(value),
  }
}

const schemaLabels = ['priority_level', 'flow_schema'] as const

function schemaMetrics(metrics: Metrics) {
  const named = (name: string, help: string, more: readonly string[] = []) => ({
    name: `apiserver_flowcontrol_${name}`,
    help,
    labels: [...schemaLabels, ...more],
  })
  const dispatched = metrics.counter(named('dispatched_requests_total', 'Requests that were let through.'))
  const rejected = metrics.counter(named('rejected_requests_total', 'Requests that were turned away.', ['reason']))
  const inQueueRequests = metrics.gauge(named('current_inqueue_requests', 'Requests that wait.'))
  const inQueueSeats = metrics.gauge(named('current_inqueue_seats', 'Seats that waiting requests want.'))
  const executingRequests = metrics.gauge(named('current_executing_requests', 'Requests being worked on; of watches, those that start.'))
  const executingSeats = metrics.gauge(named('current_executing_seats', 'Seats in use.'))
  const queueLength = metrics.histogram({ ...named('request_queue_length_after_enqueue', 'How long a queue was for who joined it.'), buckets: lengthBuckets })
  const estimatedSeats = metrics.histogram({ ...named('work_estimated_seats', 'Seats that requests were thought to need.'), buckets: seatBuckets })
  const waited = metrics.histogram({ ...named('request_wait_duration_seconds', 'How long requests waited.', ['execute']), buckets: durationBuckets })
  const executed = metrics.histogram({ ...named('request_execution_seconds', 'How long requests were worked on.', ['type']), buckets: durationBuckets })
  const noAccommodation = metrics.counter(named('request_dispatch_no_accommodation_total', 'How often the next request needed more seats than were free.'))
  const watchCount = metrics.histogram({ ...named('watch_count_samples', 'Watches that heard of writes.'), buckets: watchBuckets })
  return (labels: { readonly priority_level: string; readonly flow_schema: string }): SchemaMetrics => {
    const rejections = new Map<RejectReason, CounterSeries>()
    const rejectionsOf = (reason: RejectReason) => {
      const series = rejections.get(reason) ?? rejected.series({ ...labels, reason })
      rejections.set(reason, series)
      return series
    }
    return {
      dispatched: dispatched.series(labels),
      inQueueRequests: inQueueRequests.series(labels),
      inQueueSeats: inQueueSeats.series(labels),
      executingRequests: executingRequests.series(labels),
      executingSeats: executingSeats.series(labels),
      queueLength: queueLength.series(labels),
      estimatedSeats: estimatedSeats.series(labels),
      waitedAndRan: waited.series({ ...labels, execute: 'true' }),
      waitedInVain: waited.series({ ...labels, execute: 'false' }),
      executionSeconds: executed.series({ ...labels, type: 'regular' }),
      watchExecutionSeconds: executed.series({ ...labels, type: 'watch' }),
      noAccommodation: noAccommodation.series(labels),
      watchCount: watchCount.series(labels),
      rejected: (reason) => rejectionsOf(reason).inc(),
    }
  }
}

function levelMetrics(metrics: Metrics) {
  const gauge = (name: string, help: string) => metrics.gauge({ name: `apiserver_flowcontrol_${name}`, help, labels: ['priority_level'] })
  const currentR = gauge('current_r', 'The virtual time, in seat-seconds per queue.')
  const dispatchR = gauge('dispatch_r', 'The virtual time of the last dispatch.')
  const latestS = gauge('latest_s', 'Where in virtual time the queue stood that was dispatched from last.')
  const nominal = gauge('nominal_limit_seats', 'Seats by configuration.')
  const lower = gauge('lower_limit_seats', 'Seats that are never lent.')
  const upper = gauge('upper_limit_seats', 'Seats including all that may be borrowed.')
  const current = gauge('current_limit_seats', 'Seats at this moment.')
  const highWatermark = gauge('demand_seats_high_watermark', 'Most seats wanted in the last period.')
  const average = gauge('demand_seats_average', 'Seats wanted on average in the last period.')
  const deviation = gauge('demand_seats_stdev', 'Standard deviation of the seats wanted in the last period.')
  const smoothed = gauge('demand_seats_smoothed', 'Seats wanted, smoothed over periods.')
  const target = gauge('target_seats', 'Seats aimed for.')
  const ratios = ratioHistograms(metrics)
  const bounds = boundGauges(metrics)
  return (priorityLevel: string): LevelMetrics => {
    const labels = { priority_level: priorityLevel }
    return {
      ...ratios(labels),
      bounds: bounds(labels),
      currentR: currentR.series(labels),
      dispatchR: dispatchR.series(labels),
      latestS: latestS.series(labels),
      limits(nominalSeats, lowerSeats, upperSeats) {
        nominal.set(nominalSeats, labels)
        lower.set(lowerSeats, labels)
        upper.set(upperSeats, labels)
      },
      demand(seen, currentLimit) {
        highWatermark.set(seen.highWatermark, labels)
        average.set(seen.average, labels)
        deviation.set(seen.deviation, labels)
        smoothed.set(seen.smoothed, labels)
        if (seen.target !== undefined) target.set(seen.target, labels)
        current.set(currentLimit, labels)
      },
    }
  }
}

type LevelLabels = { readonly priority_level: string }

/** Each counts the nanoseconds that a ratio had a value. */
function ratioHistograms(metrics: Metrics) {
  const histogram = (name: string, help: string, labels: readonly string[], buckets: readonly number[]) =>
    metrics.histogram({ name: `apiserver_flowcontrol_${name}`, help: `At the end of every nanosecond, ${help}.`, labels, buckets })
  const demand = histogram('demand_seats', 'seats wanted, as a fraction of the limit', ['priority_level'], demandBuckets)
  const seats = histogram('priority_level_seat_utilization', 'seats in use, as a fraction of the limit', ['priority_level', 'phase'], utilizationBuckets)
  const requests = histogram('priority_level_request_utilization', 'requests, as a fraction of the limit', ['phase', 'priority_level'], requestBuckets)
  return (labels: LevelLabels) => ({
    demandRatio: demand.series(labels),
    seatRatio: seats.series({ ...labels, phase: 'executing' }),
    executingRatio: requests.series({ ...labels, phase: 'executing' }),
    waitingRatio: requests.series({ ...labels, phase: 'waiting' }),
  })
}

function boundGauges(metrics: Metrics) {
  const gauge = (name: string, help: string) => metrics.gauge({ name: `apiserver_flowcontrol_${name}`, help, labels: ['priority_level', 'bound'] })
  const plain = gauge('next_s_bounds', 'First and last virtual time of the queues with waiting requests.')
  const discounted = gauge('next_discounted_s_bounds', 'The same, less what is worked on.')
  return (labels: LevelLabels): LevelMetrics['bounds'] => {
    const [min, max] = [plain.series({ ...labels, bound: 'min' }), plain.series({ ...labels, bound: 'max' })]
    const [discountedMin, discountedMax] = [discounted.series({ ...labels, bound: 'min' }), discounted.series({ ...labels, bound: 'max' })]
    return (least, most, leastDiscounted, mostDiscounted) => {
      min.set(least)
      max.set(most)
      discountedMin.set(leastDiscounted)
      discountedMax.set(mostDiscounted)
    }
  }
}
