/**
 * Knows when nothing is under way in this process: no request between a component and the API server, and nothing left for the event loop to do
 * now. Microtasks have always run before the event loop's next turn, so that a turn in which no immediate waits has nothing left.
 * What waits for a clock, a watch or a user is not under way.
 */
import type { Clock } from '#base/clock'

/** Counts the requests under way; those that only wait for time to pass do not count. */
export class Activity {
  #inFlight = 0
  /** Grows with each beginning and end, which shows whether anything moves. */
  #changes = 0

  /** How many of those under way were found to wait for the clock after all. */
  #waiting = 0
  /** The fate of each pending call when the server is lost. */
  readonly losses = new Set<() => void>()

  /** Below zero while a request that came from outside of this process, and was not counted, waits. */
  get inFlight(): number {
    return this.#inFlight - this.#waiting
  }

  /** Nothing moves although so many are under way: they wait for the clock, and are not waited for any more. */
  giveUp(): void {
    this.#waiting = this.#inFlight
  }

  /** The server is lost, with the answers to all that is under way. */
  lose(): void {
    for (const lost of [...this.losses]) lost()
  }

  get changes(): number {
    return this.#changes
  }

  begin(): void {
    this.#inFlight++
    this.#changes++
  }

  end(): void {
    this.#inFlight--
    this.#waiting = Math.min(this.#waiting, Math.max(0, this.#inFlight))
    this.#changes++
  }

  /** Leaves the request that is waiting out of the count. */
  async pause<T>(waiting: Promise<T>): Promise<T> {
    this.end()
    try {
      return await waiting
    } finally {
      this.begin()
    }
  }
}

/** The clock of what waits within a request: while it sleeps, the request is not under way. */
export function pausingClock(clock: Clock, activity: Activity): Clock {
  return {
    now: () => clock.now(),
    monotonicMs: () => clock.monotonicMs(),
    timer: (ms, fn) => clock.timer(ms, fn),
    sleep: (ms, signal) => activity.pause(clock.sleep(ms, signal)),
    turn: () => clock.turn(),
  }
}

/**
 * The looks that wait for their turn, of every cluster in this process: they are immediates too, and must not wait for each other. The event loop
 * is one per process, and so is this count.
 */
const looks = { waiting: 0 }

/**
 * A request that is under way while the event loop has nothing to do waits for another thread (a signature, a file), which takes milliseconds, or
 * for the clock, which would never end. This long without any change means the clock.
 */
const patienceMs = 2_000
const lookAgainMs = 1

/** Resolves when nothing is under way. */
export function settle(activity: Activity): Promise<void> {
  return new Promise((resolve) => {
    let changes = -1
    let sinceMs = 0
    const look = () => {
      looks.waiting--
      if (immediatesWaiting() > looks.waiting) return again()
      if (activity.inFlight <= 0) return resolve()
      if (activity.changes !== changes) {
        changes = activity.changes
        sinceMs = performance.now()
      } else if (performance.now() - sinceMs > patienceMs) {
        activity.giveUp()
        return resolve()
      }
      setTimeout(again, lookAgainMs)
    }
    const again = () => {
      looks.waiting++
      setImmediate(look)
    }
    again()
  })
}

function immediatesWaiting(): number {
  let count = 0
  for (const resource of process.getActiveResourcesInfo()) if (resource === 'Immediate') count++
  return count
}
