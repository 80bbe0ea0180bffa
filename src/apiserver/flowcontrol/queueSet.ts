/**
 * The queues of one priority level (L3): fair queuing in seat-seconds. Virtual time advances by each busy queue's fair share of the seats; the
 * next request is taken from the queue that would finish it first. The clock is read once per step.
 * Upstream: apiserver/pkg/util/flowcontrol/fairqueuing/queueset (doc.go explains the arithmetic).
 */
import type { Clock } from '#base/clock'
import type { ServerRequest } from '../core/request.ts'
import type { LevelMetrics } from './flowMetrics.ts'
import { estimatedServiceSeconds, type Flow, FlowRequest, Queue, RequestList } from './flowRequest.ts'
import type { Integrator } from './integrator.ts'
import { TimedRatio } from './timedRatio.ts'
import type { WorkEstimate } from './workEstimate.ts'

export interface QueuingConfiguration {
  /** Number of queues; 0: no queues, a request without a free seat is refused; -1: no limit. */
  readonly queues: number
  readonly handSize: number
  readonly queueLengthLimit: number
}

export interface QueueSetParts {
  readonly clock: Clock
  readonly metrics: LevelMetrics
  /** Integrates how many seats are used or requested. */
  readonly demand: Integrator
}

/** Counters for the debugging endpoints. */
export interface QueueSetCounts {
  waiting: number
  executing: number
  dispatched: number
  rejected: number
  cancelled: number
}

export class QueueSet {
  readonly counts: QueueSetCounts = { waiting: 0, executing: 0, dispatched: 0, rejected: 0, cancelled: 0 }
  /** Executing requests that went through no queue. */
  readonly queueless = new RequestList()
  readonly #parts: QueueSetParts
  #configuration: QueuingConfiguration = { queues: 0, handSize: 1, queueLengthLimit: 1 }
  #limit = 0
  #queues: Queue[] = []
  /** The queues with waiting requests, unordered: most queues are empty, and each dispatch searches only these. */
  readonly #waitingQueues: Queue[] = []
  #currentR = 0
  #lastMs: number
  #robinIndex = -1
  #busyQueues = 0
  #seatsInUse = 0
  #seatsWaiting = 0
  /** Seats of requests that were answered synchronously in the last few turns of the event loop. */
  #seatsLately = 0
  #enqueues = 0
  readonly #ratios: { readonly demand: TimedRatio; readonly seats: TimedRatio; readonly executing: TimedRatio; readonly waiting: TimedRatio }

  constructor(parts: QueueSetParts) {
    this.#parts = parts
    this.#lastMs = parts.clock.monotonicMs()
    const { demandRatio, seatRatio, executingRatio, waitingRatio } = parts.metrics
    const ratioIn = (series: typeof demandRatio) => new TimedRatio(series, this.#lastMs)
    this.#ratios = { demand: ratioIn(demandRatio), seats: ratioIn(seatRatio), executing: ratioIn(executingRatio), waiting: ratioIn(waitingRatio) }
  }

  get queues(): readonly Queue[] {
    return this.#queues
  }

  get isIdle(): boolean {
    return this.counts.waiting === 0 && this.counts.executing === 0
  }

  /**
   * Queues are added at once; surplus queues are removed when they are empty.
   * @param denominator what its use is shown as a fraction of
   */
  configure(configuration: QueuingConfiguration, limit: number, denominator = Math.max(1, limit)): void {
    const nowMs = this.#sync()
    for (let index = this.#queues.length; index < configuration.queues; index++) this.#queues.push(new Queue(index))
    const { queueLengthLimit, handSize } = this.#configuration
    this.#configuration = configuration.queues > 0 ? configuration : { ...configuration, queueLengthLimit, handSize }
    this.#limit = limit
    const { demand, seats, executing, waiting } = this.#ratios
    for (const ratio of [demand, seats, executing]) ratio.setDenominator(denominator, nowMs)
    waiting.setDenominator(Math.max(1, this.#configuration.queueLengthLimit) * Math.max(1, configuration.queues), nowMs)
    this.#dispatchAll()
  }

  /** Records the use until now in the metrics. */
  note(nowMs: number): void {
    for (const ratio of Object.values(this.#ratios)) ratio.note(nowMs)
  }

  /**
   * Accepts a request: it is executing, waiting or rejected when this returns.
   * @param isPatient it waits although its queue is full
   */
  start(flow: Flow, request: ServerRequest, work: WorkEstimate, isPatient: boolean): FlowRequest {
    const nowMs = this.#sync()
    if (this.#configuration.queues < 1) return this.#startWithoutQueue(flow, request, work, nowMs)
    const queue = this.#chooseQueue(flow.hand)
    const entry = new FlowRequest(this, flow, request, work, queue, nowMs, this.#currentR)
    if (queue.isIdle) queue.nextDispatchR = this.#currentR
    // No request waits and there is room: queuing would dispatch it at once.
    const hasSeats = this.#hasSeats(flow)
    if (this.counts.waiting === 0 && hasSeats && this.#accommodates(entry.seats)) {
      flow.metrics.queueLength.observe(1)
      this.#tellBounds([queue])
      this.#execute(entry, queue, nowMs)
      return entry
    }
    if (!isPatient && !hasSeats && queue.waiting.length >= this.#configuration.queueLengthLimit) return this.#reject(entry, 'queue-full')
    this.#enqueue(entry, queue, nowMs)
    this.#bound(queue)
    this.#dispatchAll(nowMs)
    return entry
  }

  /** Ends an executing request. @returns how long it took, in milliseconds */
  finish(entry: FlowRequest): number {
    const nowMs = this.#sync()
    const serviceMs = nowMs - entry.startMs
    entry.state = 'done'
    this.counts.executing--
    entry.flow.metrics.executingRequests.add(-1)
    const { queue } = entry
    if (queue) {
      queue.executing.remove(entry)
      if (queue.isIdle) this.#busyQueues--
      queue.nextDispatchR -= entry.initialSeats * (estimatedServiceSeconds - serviceMs / 1000)
      this.#bound(queue)
    } else this.queueless.remove(entry)
    if (entry.additionalLatencyMs <= 0) this.#release(entry, nowMs)
    else {
      this.#noteDemand(nowMs)
      this.#parts.clock.timer(entry.additionalLatencyMs, () => {
        const laterMs = this.#sync()
        this.#release(entry, laterMs)
        this.#dispatchAll(laterMs)
      })
    }
    this.#dispatchAll(nowMs)
    return serviceMs
  }

  remember({ flow, seats }: FlowRequest): void {
    flow.lately.seats += seats
    this.#seatsLately += seats
    this.#parts.demand.set(this.#wanted, this.#lastMs)
  }

  forget({ flow, seats }: FlowRequest, nowMs: number): void {
    flow.lately.seats -= seats
    this.#seatsLately -= seats
    this.#parts.demand.set(this.#wanted, nowMs)
    if (this.counts.waiting > 0) this.#dispatchAll(this.#sync(nowMs))
  }

  /** Removes a waiting request from its queue. False: it is not waiting any more. */
  cancel(entry: FlowRequest): boolean {
    const { queue } = entry
    if (entry.state !== 'waiting' || !queue) return false
    const nowMs = this.#sync()
    this.#dequeue(entry, queue)
    if (queue.isIdle) this.#busyQueues--
    this.#bound(queue)
    this.counts.cancelled++
    this.#reject(entry, 'time-out')
    this.#noteDemand(nowMs)
    return true
  }

  #startWithoutQueue(flow: Flow, request: ServerRequest, work: WorkEstimate, nowMs: number): FlowRequest {
    const entry = new FlowRequest(this, flow, request, work, undefined, nowMs, this.#currentR)
    const isUnlimited = this.#configuration.queues < 0
    if (!isUnlimited && !(this.#hasSeats(flow) && this.#accommodates(entry.seats))) return this.#reject(entry, 'concurrency-limit')
    this.#execute(entry, undefined, nowMs)
    return entry
  }

  #reject(entry: FlowRequest, reason: 'queue-full' | 'concurrency-limit' | 'time-out'): FlowRequest {
    entry.state = 'rejected'
    this.counts.rejected++
    entry.flow.metrics.rejected(reason)
    return entry
  }

  /** Picks the queue of the hand with the least waiting work. The search starts at a rotating offset, so that overlapping hands share evenly. */
  #chooseQueue(hand: readonly number[]): Queue {
    const offset = this.#enqueues % hand.length
    this.#enqueues++
    let best: Queue | undefined
    for (let i = 0; i < hand.length; i++) {
      const at = offset + i
      const queue = this.#queues[hand[at < hand.length ? at : at - hand.length] as number] as Queue
      if (!best || queue.workWaiting < best.workWaiting) best = queue
    }
    return best as Queue
  }

  #enqueue(entry: FlowRequest, queue: Queue, nowMs: number): void {
    if (queue.isIdle) this.#busyQueues++
    if (queue.waiting.length === 0) this.#waitingQueues.push(queue)
    queue.waiting.push(entry)
    queue.workWaiting += entry.totalWork
    queue.seatsWaiting += entry.seats
    this.counts.waiting++
    this.#seatsWaiting += entry.seats
    const { metrics } = entry.flow
    metrics.inQueueRequests.add(1)
    metrics.inQueueSeats.add(entry.seats)
    metrics.queueLength.observe(queue.waiting.length)
    this.#noteDemand(nowMs)
  }

  #dequeue(entry: FlowRequest, queue: Queue): void {
    queue.waiting.remove(entry)
    if (queue.waiting.length === 0) {
      const last = this.#waitingQueues.pop() as Queue
      if (last !== queue) this.#waitingQueues[this.#waitingQueues.indexOf(queue)] = last
    }
    queue.seatsWaiting -= entry.seats
    // Sums of fractions drift: an empty queue has exactly no work.
    queue.workWaiting = queue.waiting.length === 0 ? 0 : queue.workWaiting - entry.totalWork
    this.counts.waiting--
    this.#seatsWaiting -= entry.seats
    const { metrics } = entry.flow
    metrics.inQueueRequests.add(-1)
    metrics.inQueueSeats.add(-entry.seats)
  }

  /** Starts a request: its seats are in use from now on. */
  #execute(entry: FlowRequest, queue: Queue | undefined, nowMs: number): void {
    entry.state = 'executing'
    entry.startMs = nowMs
    if (queue) {
      if (entry.finalSeats > this.#limit) {
        entry.additionalLatencyMs = (entry.finalWork * 1000) / this.#limit
        entry.finalSeats = this.#limit
      }
      if (queue.isIdle) this.#busyQueues++
      queue.executing.push(entry)
      queue.seatsInUse += entry.seats
      this.#parts.metrics.dispatchR.set(this.#currentR)
      this.#parts.metrics.latestS.set(queue.nextDispatchR)
      queue.nextDispatchR += entry.totalWork
    } else this.queueless.push(entry)
    this.counts.executing++
    this.counts.dispatched++
    this.#seatsInUse += entry.seats
    const { metrics } = entry.flow
    metrics.executingRequests.add(1)
    metrics.executingSeats.add(entry.seats)
    this.#noteDemand(nowMs)
  }

  #release(entry: FlowRequest, nowMs: number): void {
    this.#seatsInUse -= entry.seats
    entry.flow.metrics.executingSeats.add(-entry.seats)
    this.#noteDemand(nowMs)
    const { queue } = entry
    if (!queue) return
    queue.seatsInUse -= entry.seats
    if (this.#queues.length > this.#configuration.queues && queue.isIdle && this.#queues[queue.index] === queue) this.#removeQueue(queue)
  }

  #removeQueue({ index }: Queue): void {
    this.#queues.splice(index, 1)
    for (let i = index; i < this.#queues.length; i++) (this.#queues[i] as Queue).index = i
    if (this.#robinIndex >= index) this.#robinIndex--
  }

  #dispatchAll(nowMs = this.#lastMs): void {
    while (this.counts.waiting > 0 && this.#seatsInUse < this.#limit && this.#dispatch(nowMs));
  }

  #dispatch(nowMs: number): boolean {
    const queue = this.#nextQueue()
    const entry = queue?.waiting.first
    if (!queue || !entry) return false
    if (!this.#accommodates(entry.seats)) {
      entry.flow.metrics.noAccommodation.inc()
      return false
    }
    this.#tellBounds(this.#waitingQueues)
    this.#robinIndex = queue.index
    this.#dequeue(entry, queue)
    // The request moves from one list to the other, so the number of busy queues does not change.
    if (queue.isIdle) this.#busyQueues--
    this.#execute(entry, queue, nowMs)
    this.#bound(queue)
    entry.dispatched?.()
    return true
  }

  /** The queue whose oldest request would be finished first; of equals, the one after that served last. */
  #nextQueue(): Queue | undefined {
    const count = this.#queues.length
    let best: Queue | undefined
    let bestFinish = Number.POSITIVE_INFINITY
    let bestTurn = count
    for (const queue of this.#waitingQueues) {
      const oldest = queue.waiting.first
      if (!oldest || !this.#hasSeats(oldest.flow)) continue
      const finish = queue.nextDispatchR + oldest.totalWork
      const turn = (queue.index - this.#robinIndex - 1 + count) % count
      if (finish > bestFinish || (finish === bestFinish && turn > bestTurn)) continue
      best = queue
      bestFinish = finish
      bestTurn = turn
    }
    // If the request does not fit, the round-robin position stays.
    return best
  }

  /** Whether the level has a free seat for the flow; seats that the flow used in the last few turns count as taken. */
  #hasSeats({ lately }: Flow): boolean {
    return this.#seatsInUse + lately.seats < this.#limit
  }

  #accommodates(seats: number): boolean {
    // Needs more seats than the level has: it runs alone, or would never run.
    if (seats > this.#limit) return this.counts.executing === 0
    return this.#seatsInUse + seats <= this.#limit
  }

  /** A queue that was idle does not save up its share: no virtual start is before the request's arrival. */
  #bound(queue: Queue): void {
    const oldest = queue.waiting.first
    if (oldest && queue.nextDispatchR < oldest.arrivalR) queue.nextDispatchR = oldest.arrivalR
  }

  /** Demand includes requests that were answered synchronously: otherwise a level with fast answers could never borrow seats. */
  get #wanted(): number {
    return this.#seatsInUse + this.#seatsWaiting + this.#seatsLately
  }

  #noteDemand(nowMs: number): void {
    const wanted = this.#wanted
    this.#parts.demand.set(wanted, nowMs)
    this.#ratios.demand.set(wanted, nowMs)
    this.#ratios.seats.set(this.#seatsInUse, nowMs)
    this.#ratios.executing.set(this.counts.executing, nowMs)
    this.#ratios.waiting.set(this.counts.waiting, nowMs)
  }

  /** Reports the bounds over the queues with waiting requests, or over the one whose request runs at once. */
  #tellBounds(queues: readonly Queue[]): void {
    let least = Number.POSITIVE_INFINITY
    let most = Number.NEGATIVE_INFINITY
    let leastDiscounted = Number.POSITIVE_INFINITY
    let mostDiscounted = Number.NEGATIVE_INFINITY
    for (const { nextDispatchR, seatsInUse } of queues) {
      const discounted = nextDispatchR - seatsInUse * estimatedServiceSeconds
      least = Math.min(least, nextDispatchR)
      most = Math.max(most, nextDispatchR)
      leastDiscounted = Math.min(leastDiscounted, discounted)
      mostDiscounted = Math.max(mostDiscounted, discounted)
    }
    this.#parts.metrics.bounds(least, most, leastDiscounted, mostDiscounted)
  }

  /** Advances the virtual time to now; called before any change. */
  #sync(nowMs = this.#parts.clock.monotonicMs()): number {
    if (this.#busyQueues > 0) {
      const rate = Math.min(this.#seatsInUse + this.#seatsWaiting, this.#limit) / this.#busyQueues
      this.#currentR += (rate * (nowMs - this.#lastMs)) / 1000
      this.#parts.metrics.currentR.set(this.#currentR)
    }
    this.#lastMs = nowMs
    return nowMs
  }
}
