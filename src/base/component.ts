/**
 * What every moving part is (L0): a function of what it needs that returns something to run until told to stop.
 * `run` resolves only when everything it started has truly stopped; it rejects only on a failure it cannot survive.
 */
export interface Component {
  readonly name: string
  run(signal: AbortSignal): Promise<void>
}
