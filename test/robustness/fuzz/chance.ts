/** Random choices from one seed, which is printed: SKIFF_FUZZ_SEED replays a run. */
import { type Random, seededRandom } from '#base/random'

export class Chance {
  readonly #random: Random

  constructor(seed: number) {
    this.#random = seededRandom(seed)
  }

  /** In [0, bound). */
  int(bound: number): number {
    return this.#random.int(bound)
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.#random.int(times) === 0
  }

  pick<T>(items: readonly T[]): T {
    return items[this.#random.int(items.length)] as T
  }

  /** One of the values, by weight. */
  weighted<T>(choices: readonly (readonly [weight: number, value: T])[]): T {
    let at = this.#random.int(choices.reduce((sum, [weight]) => sum + weight, 0))
    for (const [weight, value] of choices) {
      at -= weight
      if (at < 0) return value
    }
    throw new Error('no choice')
  }
}

/**
 * The seed and size of a run: from SKIFF_FUZZ_SEED (`random`: a new one) and SKIFF_FUZZ_REQUESTS, else one that stays the same, so that a change
 * is judged by what it changes, and the test's own size.
 */
export function fuzzRun(requests: number): { seed: number; requests: number } {
  const { SKIFF_FUZZ_SEED: wanted = '1' } = process.env
  const seed = wanted === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(wanted)
  return { seed, requests: Number(process.env.SKIFF_FUZZ_REQUESTS ?? requests) }
}
