/**
 * One priority level (L3): its configuration, its queues, and how many seats it may use.
 * Upstream: apf_controller.go priorityLevelState, plSpecCommons, queueSetCompleterForPL.
 */
import type { PriorityLevelConfiguration } from '#api/gen/types/flowcontrol.v1'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { DroppedRequests } from './droppedRequests.ts'
import type { LevelMetrics } from './flowMetrics.ts'
import { Integrator, type IntegratorResults } from './integrator.ts'
import { QueueSet, type QueuingConfiguration } from './queueSet.ts'

/** Weight of the old demand after a period: half after five minutes. */
const smoothing = 0.977
/** The share of the nominal seats that one request may take. */
const mostOfNominal = 0.15

/** Seats by configuration. */
export interface SeatLimits {
  readonly nominal: number
  /** Nominal seats without all lendable ones. */
  readonly lower: number
  /** Nominal seats with all that it may borrow. */
  readonly upper: number
}

export interface SeatDemand {
  average: number
  deviation: number
  highWatermark: number
  smoothed: number
}

export class PriorityLevel {
  readonly name: string
  readonly queueSet: QueueSet
  readonly dropped = new DroppedRequests()
  readonly demand: SeatDemand = { average: 0, deviation: 0, highWatermark: 0, smoothed: 0 }
  readonly metrics: LevelMetrics
  object: Frozen<PriorityLevelConfiguration>
  queuing: QueuingConfiguration
  limits: SeatLimits = { nominal: 0, lower: 0, upper: 0 }
  /** Seats at this moment, borrowed ones included. */
  currentLimit = -1
  /** Seats that one request may take; 0: no limit. */
  maxSeats = 0
  /** True when no configuration names the level any more; it is removed when it is idle. */
  quiescing = false
  readonly #integrator: Integrator

  constructor(object: Frozen<PriorityLevelConfiguration>, clock: Clock, metrics: LevelMetrics) {
    this.name = object.metadata.name ?? ''
    this.object = object
    this.queuing = queuingOf(object)
    this.metrics = metrics
    this.#integrator = new Integrator(clock.monotonicMs())
    this.queueSet = new QueueSet({ clock, metrics, demand: this.#integrator })
  }

  get isExempt(): boolean {
    return this.object.spec.type === 'Exempt'
  }

  /** Applies a new version of its object. */
  update(object: Frozen<PriorityLevelConfiguration>): void {
    this.object = object
    this.queuing = queuingOf(object)
    this.quiescing = false
  }

  /** Sets its share of the server. A new level starts in the middle between lending nothing and lending all it may. */
  setLimits(limits: SeatLimits): void {
    this.limits = limits
    this.maxSeats = maxSeatsOf(limits.nominal, this.queuing)
    this.metrics.limits(limits.nominal, limits.lower, limits.upper)
    if (this.currentLimit < 0) this.currentLimit = limits.nominal - Math.trunc((limits.nominal - limits.lower) / 2)
  }

  /** Ends a period of observation. */
  observe(nowMs: number): void {
    this.queueSet.note(nowMs)
    const seen: IntegratorResults = this.#integrator.reset(nowMs)
    this.demand.highWatermark = Math.round(seen.max)
    if (seen.seconds <= 0) return
    const deviation = Number.isNaN(seen.deviation) ? 0 : seen.deviation
    const envelope = seen.average + deviation
    this.demand.average = seen.average
    this.demand.deviation = deviation
    this.demand.smoothed = Math.max(envelope, smoothing * this.demand.smoothed + (1 - smoothing) * envelope)
  }

  /**
   * @param target the fair target; undefined for the exempt level, which is not limited
   * @param denominator what its use is shown as a fraction of
   */
  setCurrentLimit(seats: number, target: number | undefined, denominator: number): void {
    this.currentLimit = seats
    this.metrics.demand({ ...this.demand, target }, seats)
    this.queueSet.configure(this.queuing, seats, denominator)
  }
}

function maxSeatsOf(nominal: number, { queues, handSize }: QueuingConfiguration): number {
  return queues < 1 ? 0 : Math.max(1, Math.min(Math.ceil(nominal * mostOfNominal), Math.trunc(nominal / handSize)))
}

/** Shares of the server, and the lendable and borrowable percentages; undefined: no limit. */
export function sharesOf({ spec }: Frozen<PriorityLevelConfiguration>): {
  shares: number
  lendablePercent: number
  borrowingLimitPercent?: number | undefined
} {
  const { nominalConcurrencyShares: shares = 0, lendablePercent = 0 } = spec.limited ?? spec.exempt ?? {}
  return { shares, lendablePercent, borrowingLimitPercent: spec.limited?.borrowingLimitPercent }
}

/** False for inconsistent objects, which are ignored. */
export function isUsable({ metadata, spec }: Frozen<PriorityLevelConfiguration>): boolean {
  if ((spec.type === 'Limited') !== (spec.limited !== undefined) || (spec.type === 'Exempt') !== (spec.exempt !== undefined)) return false
  if ((spec.type === 'Exempt') !== (metadata.name === 'exempt')) return false
  const response = spec.limited?.limitResponse
  return !response || (response.type === 'Reject') === (response.queuing === undefined)
}

function queuingOf({ spec }: Frozen<PriorityLevelConfiguration>): QueuingConfiguration {
  const queuing = spec.limited?.limitResponse?.queuing
  if (!queuing) return { queues: spec.limited ? 0 : -1, handSize: 1, queueLengthLimit: 1 }
  const { queues = 64, handSize = 8, queueLengthLimit = 50 } = queuing
  return { queues, handSize, queueLengthLimit }
}
