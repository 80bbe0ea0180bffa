/** Background work of the server (L3), such as repairs. */
export interface ServerWork {
  /** The server is not ready before this is done; it is tried again until it succeeds. */
  start?(signal: AbortSignal): Promise<void>
  /** Called after all works have started; runs until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Called when the shutdown is announced, while requests are still served. */
  stop?(signal: AbortSignal): Promise<void>
}
