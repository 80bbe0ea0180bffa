/** How long Deployments take to become what an operation asked for (L4): until all replicas are of the newest template and ready. */
import type { Deployment } from '#api/gen/types/apps.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { ReflectorTarget } from '#client/cache/reflector'
import type { WatchEvent } from '#client/transport'
import type { Samples } from './samples.ts'

interface Pending {
  readonly what: string
  readonly startedMs: number
  readonly generation: number
  readonly samples: Samples
}

export class DeploymentTimes implements ReflectorTarget<Deployment> {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** By key: the newest operation of each Deployment that is not done. */
  readonly #pending = new Map<string, Pending>()
  /** By key: the generation for which all replicas are ready; 0 while they are not. */
  readonly #settled = new Map<string, number>()
  #overtaken = 0

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** Operations that are not done. */
  get pending(): number {
    return this.#pending.size
  }

  /** Operations that were not done when the next one of the same Deployment began. */
  get overtaken(): number {
    return this.#overtaken
  }

  /** The Deployment as the server answered, and when the request was sent. */
  begin(what: string, { metadata }: Frozen<Deployment>, startedMs: number, samples: Samples): void {
    const key = keyOf({ metadata })
    if (this.#pending.has(key)) this.#overtaken++
    this.#pending.set(key, { what, startedMs, generation: metadata.generation ?? 0, samples })
    // The watch may have been faster than the answer.
    this.#settle(key)
  }

  replace(items: readonly Frozen<Deployment>[]): void {
    this.#settled.clear()
    for (const item of items) this.#see(item)
  }

  apply(events: readonly WatchEvent<Frozen<Deployment>>[]): void {
    for (const { type, object } of events) {
      if (type === 'DELETED') this.#settled.delete(keyOf(object))
      else this.#see(object)
    }
  }

  #see(deployment: Frozen<Deployment>): void {
    const key = keyOf(deployment)
    this.#settled.set(key, isSettled(deployment) ? (deployment.status?.observedGeneration ?? 0) : 0)
    this.#settle(key)
  }

  #settle(key: string): void {
    const pending = this.#pending.get(key)
    if (!pending || (this.#settled.get(key) ?? 0) < pending.generation) return
    this.#pending.delete(key)
    pending.samples.add(`${pending.what} to all ready`, this.#clock.monotonicMs() - pending.startedMs)
  }
}

function isSettled({ spec, status }: Frozen<Deployment>): boolean {
  const wanted = spec?.replicas ?? 1
  const { replicas = 0, updatedReplicas = 0, readyReplicas = 0 } = status ?? {}
  return replicas === wanted && updatedReplicas === wanted && readyReplicas === wanted
}
