/** What a benchmark is: a name and a function that measures. The runner knows nothing else about it. */

export interface Measurement {
  /** What was measured, such as "cold start, launch to ready". */
  readonly what: string
  readonly unit: string
  /** One value per repeat; the report shows their median and their range. */
  readonly values: readonly number[]
  /** What the project promises. */
  readonly target?: { readonly atMost?: number; readonly atLeast?: number } | undefined
  /** Anything that helps to read the numbers: latencies, CPU per operation. */
  readonly note?: string | undefined
}

export interface ScenarioContext {
  /** An empty folder of this run, for clusters and files. */
  readonly dir: string
  /** Aborts when the run's time is up. */
  readonly signal: AbortSignal
  /** Prints the progress to stderr. */
  progress(text: string): void
}

export interface Scenario {
  readonly name: string
  readonly about: string
  /** Why it cannot run here; undefined when it can. */
  skipped?(): string | undefined
  run(context: ScenarioContext): Promise<readonly Measurement[]>
}
