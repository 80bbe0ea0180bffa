/**
 * The log facade (L0): a constant message, then keys. Upstream's verbosity numbers. Writers live in main/.
 * Objects are logged by reference ({ kind, namespace, name }), never dumped; secrets never reach a logger.
 */
export type LogFields = Readonly<Record<string, unknown>>

export interface Logger {
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  /** An error is logged once, where it is handled. */
  error(error: unknown, message: string, fields?: LogFields): void
  /** A logger that speaks only when the verbosity is at least `level`. */
  v(level: number): VerboseLogger
  /** A logger that adds the name and fields to every line. */
  with(name: string, fields?: LogFields): Logger
}

export interface VerboseLogger extends Pick<Logger, 'info'> {
  /** False: it says nothing, and the caller need not collect what it would say. */
  readonly enabled?: boolean | undefined
}

const silence = () => {}
const silent: VerboseLogger = { info: silence, enabled: false }

/** Says nothing: for tests, and for embedded clusters whose owner wants no output. */
export const noLog: Logger = { info: silence, warn: silence, error: silence, v: () => silent, with: () => noLog }
