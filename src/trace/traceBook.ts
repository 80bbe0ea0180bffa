/**
 * The trace of a server (L2): finished requests and what components did about objects, in rings of bounded size. Nothing but refusals is recorded
 * unless a reader asks: by the header of a request, by a rule for a user or an object, or by sampling.
 */
import type { ObjectEvent, TracedRequest, TraceList, TraceRule } from '#api/debug/traces'
import type { Clock } from '#base/clock'
import { EventBook } from './eventBook.ts'
import { FollowedObjects } from './followedObjects.ts'
import type { ObjectTrace } from './objectTrace.ts'
import { RateSample, type SampleCounts } from './rateSample.ts'
import { Refusals } from './refusals.ts'
import { RequestTracer } from './requestTracer.ts'
import { SharedRing } from './sharedRing.ts'
import { TraceClock } from './traceClock.ts'

const mostRequests = 4096
const mostRequestBytes = 8 * 2 ** 20
const mostEventBytes = 4 * 2 ** 20
const mostUserRules = 100

/** The facts that decide whether a request is recorded. */
export interface BeginningRequest {
  readonly isAsked: boolean
  readonly verb: string
  readonly resource: string
  readonly namespace: string
  readonly name: string
}

export interface TraceBookOptions {
  /** Every n-th request is recorded, and with 1 every event; 0: none. */
  readonly sampleEvery?: number | undefined
}

interface UserRule {
  readonly untilMs: number
  /** Its user made it. */
  readonly isOwn: boolean
}

export class TraceBook implements ObjectTrace {
  readonly #clock: TraceClock
  readonly #followed: FollowedObjects
  /** By the authenticated user, who may impersonate any number of others. */
  readonly #requests = new SharedRing<TracedRequest>(mostRequests, mostRequestBytes)
  readonly #events: EventBook
  readonly #refusals = new Refusals()
  /** By user. */
  readonly #users = new Map<string, UserRule>()
  #sampleEvery: number
  #seen = 0
  /** Absent: no rule asks for a sample. */
  #rate: RateSample | undefined

  constructor(clock: Clock, { sampleEvery = 0 }: TraceBookOptions = {}) {
    this.#clock = new TraceClock(clock)
    this.#events = new EventBook(this.#clock, mostEventBytes)
    this.#followed = new FollowedObjects(this.#clock)
    this.#sampleEvery = sampleEvery
  }

  /** Records every n-th request from now on; 0: none. */
  sample(every: number): void {
    this.#sampleEvery = every
  }

  now(): number {
    return this.#clock.now()
  }

  /** The tracer of a request; undefined when nothing records it. */
  begin(request: BeginningRequest): RequestTracer | undefined {
    const { isAsked } = request
    const isFollowed = this.#isFollowed(request)
    const isSampled = this.#samples()
    const isWanted = isAsked || isFollowed || isSampled || this.#mayDescend(request)
    if (!isWanted && this.#users.size === 0) return undefined
    const tracer = new RequestTracer(this.#clock.ofRecord(), this.#followed, isAsked)
    tracer.touchesFollowed = isFollowed
    tracer.isSampled = isSampled
    tracer.isTentative = !isWanted
    return tracer
  }

  /** Whether a rule is about the user, or about the one that the user impersonates. */
  followsUser(user: string, as = user): boolean {
    if (this.#users.size === 0) return false
    this.#dropEndedRules()
    return this.#users.has(user) || this.#users.has(as)
  }

  #isFollowed({ resource, namespace, name }: BeginningRequest): boolean {
    return name !== '' && this.#followed.has(resource, namespace, name)
  }

  /** A creation in the namespace of a followed object may be of one that it owns. */
  #mayDescend({ verb, namespace }: BeginningRequest): boolean {
    return verb === 'create' && this.#followed.isInNamespace(namespace)
  }

  #samples(): boolean {
    const isNext = this.#sampleEvery > 0 && this.#seen++ % this.#sampleEvery === 0
    return (this.#openRate()?.takesRequest(this.now()) ?? false) || isNext
  }

  #openRate(): RateSample | undefined {
    if (this.#rate?.isOver(this.now())) this.#rate = undefined
    return this.#rate
  }

  /** How much of the requests the rules for a sample record. Undefined without such a rule. */
  get sampled(): SampleCounts | undefined {
    return this.#openRate()?.counts
  }

  /** Keeps a finished request if its user asked for it, or a rule or the sampling wants it. */
  finish(tracer: RequestTracer, request: TracedRequest): void {
    const wanted = tracer.isAsked || tracer.touchesFollowed || tracer.isSampled || this.followsUser(request.user, request.as)
    if (wanted) this.#requests.push(request.user, request, JSON.stringify(request).length)
  }

  refused(request: TracedRequest): void {
    this.#refusals.add(request)
  }

  follows(resource: string, namespace: string, name: string): boolean {
    if (this.#sampleEvery === 1 || this.#followed.has(resource, namespace, name)) return true
    return this.#openRate()?.hasRoomForEvent(this.now()) ?? false
  }

  note(event: ObjectEvent): void {
    this.#rate?.tookEvent()
    this.#events.note(event)
  }

  /**
   * @param isOwn users make it about themselves: it takes the place of another such rule when there are too many
   * @returns the reason for which the rule is refused
   */
  addRule({ user, object, perSecond, seconds }: TraceRule, isOwn = false): string | undefined {
    if (perSecond !== undefined) this.#addRate(perSecond, seconds)
    if (object !== undefined && !this.#followed.ask(object, seconds * 1000)) return '1000 objects are followed already'
    if (user === undefined) return undefined
    this.#dropEndedRules()
    const isFull = this.#users.size >= mostUserRules && !this.#users.has(user)
    const [replaced] = isFull ? ([...this.#users].find(([, rule]) => rule.isOwn) ?? []) : []
    if (isFull && replaced === undefined) return `there are ${mostUserRules} rules already`
    if (replaced !== undefined) this.#users.delete(replaced)
    this.#users.set(user, { untilMs: this.now() + seconds * 1000, isOwn: isOwn && (this.#users.get(user)?.isOwn ?? true) })
    return undefined
  }

  #addRate(perSecond: number, seconds: number): void {
    const open = this.#openRate()
    if (open) open.extend(perSecond, seconds, this.now())
    else this.#rate = new RateSample(perSecond, seconds, this.now())
  }

  #dropEndedRules(): void {
    const nowMs = this.now()
    for (const [user, { untilMs }] of this.#users) if (untilMs <= nowMs) this.#users.delete(user)
  }

  /** Recorded requests and kept refusals that fit, the newest first; a refusal that was recorded is given once. */
  requests(fits: (request: TracedRequest) => boolean): TracedRequest[] {
    const found: TracedRequest[] = []
    const recorded = new Set<string>()
    for (const request of this.#requests.newest()) {
      if (!fits(request)) continue
      found.push(request)
      recorded.add(`${request.id} ${request.user}`)
    }
    for (const refusal of this.#refusals) if (fits(refusal) && !recorded.has(`${refusal.id} ${refusal.user}`)) found.push(refusal)
    return found.sort((one, other) => other.atMs - one.atMs)
  }

  /** Keeps what another server has recorded. */
  take({ requests, events }: Pick<TraceList, 'requests' | 'events'>): void {
    for (const request of requests.toReversed()) this.#requests.push(request.user, request, JSON.stringify(request).length)
    for (const event of events) this.note(event)
  }

  /** Events of these objects, or of all, by time. */
  events(objects?: ReadonlySet<string>): ObjectEvent[] {
    return this.#events.events(objects)
  }

  /** Events that ended after this time, by time. */
  eventsSince(ms: number): ObjectEvent[] {
    return this.#events.eventsSince(ms)
  }
}
