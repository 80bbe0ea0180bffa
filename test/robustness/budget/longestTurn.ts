/**
 * The longest turn of this process's event loop. A turn counts with the smaller one of the time that it took and the processor time that the
 * main thread used in it, so that neither other processes of the machine count nor other threads of this one, which collect garbage and compile.
 */
import { threadMs } from '../../../src/testing/threadTime.ts'
import { machineSlowness } from './machineSlowness.ts'

const everyMs = 2
/** Each bound is above it: shorter turns need no comparison with other machines. */
const shortMs = 150

export class LongestTurn {
  #longestMs = 0
  #at = performance.now()
  #usedMs = threadMs()
  readonly #timer = setInterval(() => this.#note(), everyMs)

  /** @returns milliseconds, as on the machine where the bounds were set; the next turn begins a new count */
  take(): number {
    this.#note()
    const longest = this.#longestMs
    const comparable = longest > shortMs ? longest / machineSlowness() : longest
    this.#note()
    this.#longestMs = 0
    return comparable
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #note(): void {
    const now = performance.now()
    const used = threadMs()
    this.#longestMs = Math.max(this.#longestMs, Math.min(now - this.#at, used - this.#usedMs))
    this.#at = now
    this.#usedMs = used
  }
}
