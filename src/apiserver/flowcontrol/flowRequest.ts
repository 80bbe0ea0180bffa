/**
 * The state of one request in flow control (L3), and lists of requests from which any is removed in constant time.
 * Upstream: fairqueuing/queueset types.go and fifo_list.go.
 */
import type { ServerRequest } from '../core/request.ts'
import type { DroppedRequests } from './droppedRequests.ts'
import type { SchemaMetrics } from './flowMetrics.ts'
import type { WorkEstimate } from './workEstimate.ts'

/** Requests with the same flow schema and, if the schema distinguishes them, the same user or namespace. */
export interface Flow {
  readonly flowSchema: string
  readonly distinguisher: string
  /** The queues it may use; empty if the level has none. */
  readonly hand: readonly number[]
  readonly metrics: SchemaMetrics
  /** Seats of requests that were answered synchronously in the last few turns: they count only against this flow. */
  readonly lately: { seats: number }
  /** Refused requests of its priority level. */
  readonly dropped: DroppedRequests
  /** Answer headers with the UIDs of the matched flow schema and priority level. */
  readonly flowSchemaUid: string
  readonly priorityLevelUid: string
}

/** The queue set in which a request starts and ends. */
export interface Turnstile {
  readonly isIdle: boolean
  /** @returns how long it executed, in milliseconds */
  finish(entry: FlowRequest): number
  /** Counts a synchronously finished request against its flow, until `forget`. */
  remember(entry: FlowRequest): void
  forget(entry: FlowRequest, nowMs: number): void
  cancel(entry: FlowRequest): boolean
}

/** The estimated duration of a request, until it has finished. */
export const estimatedServiceSeconds = 0.003

export class FlowRequest {
  readonly set: Turnstile
  readonly flow: Flow
  readonly request: ServerRequest
  readonly queue: Queue | undefined
  readonly initialSeats: number
  readonly arrivalMs: number
  /** The virtual time at its arrival. */
  readonly arrivalR: number
  finalSeats: number
  additionalLatencyMs: number
  state: 'waiting' | 'executing' | 'rejected' | 'done' = 'waiting'
  startMs = -1
  /** Called when the request leaves its queue. */
  dispatched: (() => void) | undefined = undefined
  list: RequestList | undefined = undefined
  previous: FlowRequest | undefined = undefined
  next: FlowRequest | undefined = undefined

  constructor(set: Turnstile, flow: Flow, request: ServerRequest, work: WorkEstimate, queue: Queue | undefined, arrivalMs: number, arrivalR: number) {
    this.set = set
    this.flow = flow
    this.request = request
    this.queue = queue
    this.initialSeats = work.initialSeats
    this.finalSeats = work.finalSeats
    this.additionalLatencyMs = work.additionalLatencyMs
    this.arrivalMs = arrivalMs
    this.arrivalR = arrivalR
  }

  /** The larger number of seats of both phases is reserved from beginning to end. */
  get seats(): number {
    return Math.max(this.initialSeats, this.finalSeats)
  }

  /** In seat-seconds. */
  get totalWork(): number {
    return this.initialSeats * estimatedServiceSeconds + this.finalWork
  }

  get finalWork(): number {
    return (this.finalSeats * this.additionalLatencyMs) / 1000
  }
}

/** First in, first out; a request is in one list at most. */
export class RequestList {
  length = 0
  first: FlowRequest | undefined = undefined
  #last: FlowRequest | undefined = undefined

  push(request: FlowRequest): void {
    request.list = this
    request.previous = this.#last
    request.next = undefined
    if (this.#last) this.#last.next = request
    else this.first = request
    this.#last = request
    this.length++
  }

  remove(request: FlowRequest): void {
    if (request.list !== this) return
    if (request.previous) request.previous.next = request.next
    else this.first = request.next
    if (request.next) request.next.previous = request.previous
    else this.#last = request.previous
    request.list = undefined
    request.previous = undefined
    request.next = undefined
    this.length--
  }

  *[Symbol.iterator](): Generator<FlowRequest> {
    for (let request = this.first; request; request = request.next) yield request
  }
}

/** One of the queues of a priority level. */
export class Queue {
  index: number
  readonly waiting = new RequestList()
  readonly executing = new RequestList()
  seatsInUse = 0
  seatsWaiting = 0
  /** Seat-seconds of all waiting requests. */
  workWaiting = 0
  /** The virtual time at which its next request would start, if every queue had its share of the seats. */
  nextDispatchR = 0

  constructor(index: number) {
    this.index = index
  }

  get isIdle(): boolean {
    return this.waiting.length === 0 && this.executing.length === 0
  }
}
