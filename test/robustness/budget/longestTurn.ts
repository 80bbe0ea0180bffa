/**
 * The longest turn of this process's event loop. A turn counts with the smaller one of the time that it took and the processor time that was used in
 * it, so that other processes of the machine do not count; garbage collection is in both.
 */
const everyMs = 2

export class LongestTurn {
  #longestMs = 0
  #at = performance.now()
  #cpu = process.cpuUsage()
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
  }

  #note(): void {
    const now = performance.now()
    const cpu = process.cpuUsage()
    const usedMs = (cpu.user + cpu.system - this.#cpu.user - this.#cpu.system) / 1000
    this.#longestMs = Math.max(this.#longestMs, Math.min(now - this.#at, usedMs))
    this.#at = now
    this.#cpu = cpu
  }
}
