/** A container or sandbox that cannot be started now (L3): the reason and message that its status shows, and when to try again. */
export class StartError extends Error {
  readonly reason: string
  /** Milliseconds until another try makes sense; undefined: the usual retry. */
  readonly retryAfterMs: number | undefined

  constructor(reason: string, message: string, retryAfterMs?: number) {
    super(message)
    this.name = 'StartError'
    this.reason = reason
    this.retryAfterMs = retryAfterMs
  }
}
