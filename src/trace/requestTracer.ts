/** Records the stages of one request for a reader (L2). A request without a reader has none. */
import { objectKey, type TracedObject, type TraceStage } from '#api/debug/traces'
import { shortText } from '#base/shortText'
import type { FollowedObjects } from './followedObjects.ts'
import type { RecordClock } from './traceClock.ts'

export interface StageDetail {
  readonly rule?: string | undefined
  readonly plugins?: TraceStage['plugins'] | undefined
}

/** What a created object tells about itself and its owners. */
export interface CreatedObject {
  readonly namespace?: string | undefined
  readonly name?: string | undefined
  readonly uid?: string | undefined
  readonly ownerReferences?: readonly { readonly uid: string }[] | undefined
}

/** Stages of one request that are recorded at most: retries of a write repeat some. */
const mostStages = 64

export class RequestTracer {
  readonly atMs: number
  /** The user asked by the header: what is created is followed. */
  readonly isAsked: boolean
  readonly stages: TraceStage[] = []
  /** The object that was created, whose name the request may not have. */
  created: TracedObject | undefined
  revision: number | undefined
  watchers: number | undefined
  /** True when it touches a followed object; `finish` then keeps it. */
  touchesFollowed = false
  isSampled = false
  /** It is of use only if a rule follows the user, who is not known at the beginning. */
  isTentative = false
  readonly #clock: RecordClock
  readonly #followed: FollowedObjects
  #lastMs: number

  constructor(clock: RecordClock, followed: FollowedObjects, isAsked: boolean) {
    this.#clock = clock
    this.#followed = followed
    this.isAsked = isAsked
    this.atMs = clock.now()
    this.#lastMs = this.atMs
  }

  now(): number {
    return this.#clock.now()
  }

  /** A stage that ends now. */
  add(stage: string, decision: string, durationMs: number, { rule, plugins }: StageDetail = {}): void {
    const atMs = this.#clock.now()
    this.#lastMs = atMs
    if (this.stages.length >= mostStages) return
    this.stages.push({ stage, decision: cut(decision), atMs, durationMs, ...(rule === undefined ? {} : { rule: cut(rule) }), ...(plugins ? { plugins } : {}) })
  }

  /** A stage that began when the one before ended, and ends now. */
  step(stage: string, decision: string, detail?: StageDetail): void {
    this.add(stage, decision, this.#clock.now() - this.#lastMs, detail)
  }

  /** Before an object is stored for the first time: components may act on it before the answer is sent. */
  creating(group: string, resource: string, metadata: CreatedObject): void {
    const { namespace = '', name = '', uid, ownerReferences = [] } = metadata
    this.created = { group, resource, namespace, name }
    const key = objectKey(resource, namespace, name)
    const isFollowed = this.#followed.has(resource, namespace, name) || ownerReferences.some((owner) => this.#followed.hasUid(owner.uid))
    if (!this.isAsked && !isFollowed) return
    this.touchesFollowed = true
    this.#followed.add(key, uid)
  }

  /** Before an object is stored again. */
  changing(resource: string, { namespace = '', name = '', uid }: CreatedObject): void {
    if (this.isAsked) this.#followed.add(objectKey(resource, namespace, name), uid)
  }

  stored(revision: number): void {
    this.revision = revision
    this.step('storage', `revision ${revision}`)
  }

  /** @param watchers undefined: a later write was passed on meanwhile, so the number of this one is unknown */
  passedOn(watchers: number | undefined): void {
    this.watchers = watchers
    this.step('watchFanOut', watchers === undefined ? 'passed to the watches' : `passed to ${watchers} watches`)
  }
}

const mostText = 1024

export function cut(text: string): string {
  return shortText(text, mostText)
}
