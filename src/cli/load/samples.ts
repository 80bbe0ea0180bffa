/** What was measured (L4, pure): values by name, and their percentiles. */

export interface Percentiles {
  readonly what: string
  readonly count: number
  /** In milliseconds, as the others. */
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly max: number
}

export class Samples {
  readonly #values = new Map<string, number[]>()

  add(what: string, ms: number): void {
    const values = this.#values.get(what)
    if (values) values.push(ms)
    else this.#values.set(what, [ms])
  }

  /** In the order in which the names were first added. */
  percentiles(): Percentiles[] {
    return [...this.#values].map(([what, values]) => {
      const sorted = Float64Array.from(values).sort()
      const rank = (fraction: number) => round(sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] ?? 0)
      return { what, count: sorted.length, p50: rank(0.5), p90: rank(0.9), p99: rank(0.99), max: rank(1) }
    })
  }
}

const round = (ms: number) => Math.round(ms * 10) / 10

/** Failures of requests, by operation and message, with how often each happened. */
export class Failures {
  readonly #counts = new Map<string, { readonly what: string; readonly message: string; count: number }>()

  add(what: string, message: string): void {
    const key = `${what}\n${message}`
    const known = this.#counts.get(key)
    if (known) known.count++
    else if (this.#counts.size < mostKinds || message === others) this.#counts.set(key, { what, message, count: 1 })
    else this.add(what, others)
  }

  list(): readonly { readonly what: string; readonly message: string; readonly count: number }[] {
    return [...this.#counts.values()]
  }
}

/** Messages name objects: every one may be another. */
const mostKinds = 100
const others = 'other messages'
