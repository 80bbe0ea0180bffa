/**
 * Time as a parameter (L0). Everything that asks for the time, waits or schedules gets a Clock.
 * The real clock lives in main/, because base is pure; the virtual one is in virtualClock.ts.
 */
export interface Clock {
  /** Wall time in milliseconds since the Unix epoch. */
  now(): number
  /** A time that never goes back, in milliseconds; only differences mean something. */
  monotonicMs(): number
  /** Resolves after `ms`; rejects with the signal's reason when aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls `fn` once after `ms`, unless cancelled first. */
  timer(ms: number, fn: () => void): Timer
  /** Resolves in a later turn of the event loop. Long work awaits it, so that requests are answered in between. */
  turn(): Promise<void>
  /**
   * Reports work that continues without end at one instant and so keeps virtual time from moving. Only a virtual clock has it; the caller who moves
   * the time gets the error.
   */
  readonly runaway?: ((error: Error) => void) | undefined
}

export interface Timer {
  cancel(): void
}
