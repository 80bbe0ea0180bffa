/**
 * The form of every component (L0): a function of its dependencies that returns something to run until a signal aborts.
 * `run` resolves only when everything it started has truly stopped; it rejects only on a failure it cannot survive.
 */
export interface Component {
  readonly name: string
  run(signal: AbortSignal): Promise<void>
}
