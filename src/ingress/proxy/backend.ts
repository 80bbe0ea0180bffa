/**
 * One port of a Service as requests use it (L3): its endpoints in turn, those that refused a connection a moment ago last, and how many requests it has.
 * The endpoints are replaced while requests run; each request keeps the endpoint that it has.
 */
import type { Clock } from '#base/clock'
import type { Endpoint } from '../model/endpoints.ts'

/** An endpoint that could not be connected to is avoided for this long while there are others. */
const avoidMs = 1000

export class Backend {
  /** Requests and tunnels. */
  inFlight = 0
  #endpoints: readonly Endpoint[] = []
  #next = 0
  readonly #avoidUntil = new Map<string, number>()
  readonly #clock: Pick<Clock, 'monotonicMs'>

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  get size(): number {
    return this.#endpoints.length
  }

  setEndpoints(endpoints: readonly Endpoint[]): void {
    this.#endpoints = endpoints
    const names = new Set(endpoints.map(nameOf))
    for (const name of this.#avoidUntil.keys()) if (!names.has(name)) this.#avoidUntil.delete(name)
  }

  /** The next endpoint in turn. @param tried not again, unless there is no other one */
  pick(tried: readonly Endpoint[] = []): Endpoint | undefined {
    const count = this.#endpoints.length
    const first = this.#next
    this.#next = count === 0 ? 0 : (first + 1) % count
    if (this.#avoidUntil.size === 0 && tried.length === 0) return this.#endpoints[first % count]
    const now = this.#clock.monotonicMs()
    let second: Endpoint | undefined
    for (let i = 0; i < count; i++) {
      const one = this.#endpoints[(first + i) % count] as Endpoint
      if (tried.some(({ ip, port }) => ip === one.ip && port === one.port)) continue
      if ((this.#avoidUntil.get(nameOf(one)) ?? 0) <= now) return one
      second ??= one
    }
    return second ?? this.#endpoints[first % count]
  }

  avoid(endpoint: Endpoint): void {
    if (this.#endpoints.length > 1) this.#avoidUntil.set(nameOf(endpoint), this.#clock.monotonicMs() + avoidMs)
  }

  succeeded(endpoint: Endpoint): void {
    if (this.#avoidUntil.size > 0) this.#avoidUntil.delete(nameOf(endpoint))
  }
}

const nameOf = ({ ip, port }: Endpoint) => `${ip} ${port}`
