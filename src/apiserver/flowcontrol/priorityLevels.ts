/**
 * All priority levels and the seats they share (L3): each has nominal seats by configuration, and lends and borrows seats, which is recomputed
 * every ten seconds from the demand. Upstream: apf_controller.go digestNewPLsLocked, finishQueueSetReconfigsLocked, updateBorrowingLocked.
 */
import type { PriorityLevelConfiguration } from '#api/gen/types/flowcontrol.v1'
import { mandatoryPriorityLevels } from '#api/kinds/flowcontrol/bootstrapObjects'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { allocateConcurrency } from './concurrencyAllocation.ts'
import type { FlowControlMetrics } from './flowMetrics.ts'
import { isUsable, PriorityLevel, type SeatLimits, sharesOf } from './priorityLevel.ts'

type Configuration = Frozen<PriorityLevelConfiguration>

export class PriorityLevels {
  readonly #clock: Clock
  readonly #metrics: FlowControlMetrics
  /** Seats of the whole server. */
  readonly #serverLimit: number
  #levels = new Map<string, PriorityLevel>()
  #someQuiescing = false

  constructor(deps: { readonly clock: Clock; readonly metrics: FlowControlMetrics }, serverLimit: number) {
    this.#clock = deps.clock
    this.#metrics = deps.metrics
    this.#serverLimit = serverLimit
  }

  /** The active levels, and removed ones that still finish their requests. */
  get all(): ReadonlyMap<string, PriorityLevel> {
    return this.#levels
  }

  /** True if removed levels wait to become idle. */
  get someQuiescing(): boolean {
    return this.#someQuiescing
  }

  /** A level that schemas may refer to. */
  desired(name: string): PriorityLevel | undefined {
    const level = this.#levels.get(name)
    return level?.quiescing ? undefined : level
  }

  /** Applies the whole configuration. Mandatory levels exist even if their objects are missing. */
  digest(configurations: readonly Configuration[]): void {
    const before = this.#levels
    this.#someQuiescing = false
    this.#levels = new Map()
    const usable = configurations.filter(isUsable)
    const missing = mandatoryPriorityLevels.filter(({ metadata }) => !usable.some((one) => one.metadata.name === metadata.name))
    // Without an object a mandatory level keeps its configuration.
    for (const object of missing) this.#levels.set(object.metadata.name ?? '', before.get(object.metadata.name ?? '') ?? this.#create(object))
    for (const object of usable) {
      const level = before.get(object.metadata.name ?? '') ?? this.#create(object)
      level.update(object)
      this.#levels.set(level.name, level)
    }
    for (const [name, level] of before) {
      if (this.#levels.has(name) || level.queueSet.isIdle) continue
      level.quiescing = true
      this.#someQuiescing = true
      this.#levels.set(name, level)
    }
    this.#divide()
    this.updateBorrowing()
  }

  #create(object: Configuration): PriorityLevel {
    return new PriorityLevel(object, this.#clock, this.#metrics.level(object.metadata.name ?? ''))
  }

  /** Ends a period: seats that levels did not use are lent to levels with more demand. */
  updateBorrowing(): void {
    const nowMs = this.#clock.monotonicMs()
    const levels = [...this.#levels.values()]
    for (const level of levels) level.observe(nowMs)
    const exempt = levels.filter((level) => level.isExempt)
    const limited = levels.filter((level) => !level.isExempt)
    const nominalSum = sum(levels.map(({ limits }) => limits.nominal))
    const remaining = nominalSum - sum(exempt.map(leastOfExempt))
    const limit = (level: PriorityLevel, granted: number, target: number | undefined) =>
      level.setCurrentLimit(granted, target, granted > 0 ? granted : Math.max(1, Math.round(this.#serverLimit / 10)))
    for (const level of exempt) limit(level, leastOfExempt(level), undefined)
    const seats = this.#allocate(limited, remaining, nominalSum)
    for (const [i, level] of limited.entries()) limit(level, Math.round(seats[i] as number), targetOf(level))
  }

  #allocate(levels: readonly PriorityLevel[], remaining: number, nominalSum: number): readonly number[] {
    const lowerSum = sum(levels.map(({ limits }) => limits.lower))
    const leastSum = sum(levels.map(leastOf))
    if (remaining <= lowerSum) {
      this.#metrics.fairFraction(0)
      return levels.map(({ limits }) => limits.lower)
    }
    if (remaining <= leastSum) {
      this.#metrics.fairFraction(0)
      const fraction = (remaining - lowerSum) / (leastSum - lowerSum)
      return levels.map((level) => level.limits.lower + Math.round((leastOf(level) - level.limits.lower) * fraction))
    }
    const classes = levels.map((level) => ({ lowerBound: leastOf(level), upperBound: level.limits.upper, target: targetOf(level) }))
    const allocation = allocateConcurrency(nominalSum, classes)
    this.#metrics.fairFraction(allocation?.fairProportion ?? 0)
    return allocation?.allocations ?? levels.map(({ currentLimit }) => currentLimit)
  }

  /** Divides the seats by shares. Rounding up makes the sum slightly larger. */
  #divide(): void {
    const shareSum = sum([...this.#levels.values()].map(({ object }) => sharesOf(object).shares))
    for (const level of this.#levels.values()) level.setLimits(limitsOf(level.object, this.#serverLimit, shareSum))
  }
}

function limitsOf(object: Configuration, serverLimit: number, shareSum: number): SeatLimits {
  const { shares, lendablePercent, borrowingLimitPercent } = sharesOf(object)
  const nominal = shareSum === 0 ? 0 : Math.ceil((serverLimit * shares) / shareSum)
  const lendable = Math.round((nominal * lendablePercent) / 100)
  const borrowing = borrowingLimitPercent === undefined ? serverLimit : Math.round((nominal * borrowingLimitPercent) / 100)
  return { nominal, lower: nominal - lendable, upper: nominal + borrowing }
}

/** The least seats of a level: recently used seats stay with it, up to its nominal share. */
function leastOf({ limits, demand }: PriorityLevel): number {
  return Math.max(limits.lower, Math.min(limits.nominal, demand.highWatermark))
}

function leastOfExempt({ limits, demand }: PriorityLevel): number {
  return Math.max(limits.lower, demand.highWatermark)
}

function targetOf(level: PriorityLevel): number {
  return Math.max(leastOf(level), level.demand.smoothed)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}
