/**
 * The longest turn of this process's event loop. A turn counts with the smaller one of the time that it took and the processor time that the
 * main thread used in it, so that neither other processes of the machine count nor other threads of this one, which collect garbage and compile.
 */
import fs from 'node:fs'

const everyMs = 2
const file = `/proc/self/task/${process.pid}/schedstat`

export class LongestTurn {
  #longestMs = 0
  #at = performance.now()
  readonly #descriptor = fs.openSync(file, 'r')
  readonly #buffer = Buffer.alloc(128)
  #usedMs = this.#used()
  readonly #timer = setInterval(() => this.#note(), everyMs)

  /** @returns milliseconds; the next turn begins a new count */
  take(): number {
    this.#note()
    const longest = this.#longestMs
    this.#longestMs = 0
    return longest
  }

  stop(): void {
    clearInterval(this.#timer)
    fs.closeSync(this.#descriptor)
  }

  #note(): void {
    const now = performance.now()
    const used = this.#used()
    this.#longestMs = Math.max(this.#longestMs, Math.min(now - this.#at, used - this.#usedMs))
    this.#at = now
    this.#usedMs = used
  }

  /** The first number of the file: nanoseconds on a processor. */
  #used(): number {
    const length = fs.readSync(this.#descriptor, this.#buffer, 0, this.#buffer.length, 0)
    return Number(this.#buffer.toString('latin1', 0, length).split(' ', 1)[0]) / 1e6
  }
}
