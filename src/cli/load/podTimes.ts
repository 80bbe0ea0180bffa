/** Times of the load's pods (L4), as a client sees them: from the moment at which the watch shows a pod until it shows the pod bound, and ready. */
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen, ObjectRef } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Random } from '#base/random'
import type { ReflectorTarget } from '#client/cache/reflector'
import type { WatchEvent } from '#client/transport'
import { Samples } from './samples.ts'

interface PodTime {
  readonly ref: ObjectRef
  readonly seenMs: number
  readonly samples: Samples
  /** Where it stands among all pods. */
  at: number
  boundMs: number | undefined
  isReady: boolean
  /** A pod may become ready several times: the first one counts. */
  wasReady: boolean
}

export class PodTimes implements ReflectorTarget<Pod> {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #byUid = new Map<string, PodTime>()
  readonly #all: PodTime[] = []
  #samples = new Samples()
  #ready = 0
  #unbound = 0

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** Pods that are there. */
  get count(): number {
    return this.#all.length
  }

  get ready(): number {
    return this.#ready
  }

  /** Pods that no node has. */
  get unbound(): number {
    return this.#unbound
  }

  /** Pods that are seen from now on belong to the new samples. */
  begin(samples: Samples): void {
    this.#samples = samples
  }

  /** One of the pods; undefined when there is none. */
  any(random: Random): ObjectRef | undefined {
    return this.#all[random.int(this.#all.length)]?.ref
  }

  replace(items: readonly Frozen<Pod>[]): void {
    const there = new Set(items.map(({ metadata }) => metadata.uid ?? ''))
    for (const uid of this.#byUid.keys()) if (!there.has(uid)) this.#forget(uid)
    for (const pod of items) this.#see(pod)
  }

  apply(events: readonly WatchEvent<Frozen<Pod>>[]): void {
    for (const { type, object } of events) {
      if (type === 'DELETED') this.#forget(object.metadata.uid ?? '')
      else this.#see(object)
    }
  }

  #see(pod: Frozen<Pod>): void {
    const nowMs = this.#clock.monotonicMs()
    const time = this.#timeOf(pod, nowMs)
    if (time.boundMs === undefined && pod.spec.nodeName) {
      time.boundMs = nowMs
      this.#unbound--
      time.samples.add('pod created to scheduled', nowMs - time.seenMs)
    }
    const isReady = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
    if (isReady === time.isReady) return
    time.isReady = isReady
    this.#ready += isReady ? 1 : -1
    if (!isReady || time.wasReady) return
    time.wasReady = true
    time.samples.add('pod scheduled to ready', nowMs - (time.boundMs ?? time.seenMs))
    time.samples.add('pod created to ready', nowMs - time.seenMs)
  }

  #timeOf({ metadata: { uid = '', namespace, name = '' } }: Frozen<Pod>, seenMs: number): PodTime {
    const known = this.#byUid.get(uid)
    if (known) return known
    const time: PodTime = {
      ref: { namespace, name },
      seenMs,
      samples: this.#samples,
      at: this.#all.length,
      boundMs: undefined,
      isReady: false,
      wasReady: false,
    }
    this.#byUid.set(uid, time)
    this.#all.push(time)
    this.#unbound++
    return time
  }

  #forget(uid: string): void {
    const time = this.#byUid.get(uid)
    const last = this.#all.at(-1)
    if (!time || !last) return
    // The last pod takes the place.
    this.#all[time.at] = last
    last.at = time.at
    this.#all.pop()
    this.#byUid.delete(uid)
    if (time.isReady) this.#ready--
    if (time.boundMs === undefined) this.#unbound--
  }
}
