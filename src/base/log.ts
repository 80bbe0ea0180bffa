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
  /** False: the message is dropped, so the caller need not collect its fields. */
  readonly enabled?: boolean | undefined
}

const silence = () => {}
const silent: VerboseLogger = { info: silence, enabled: false }

/** Logs nothing: for tests, and for embedded clusters without output. */
export const noLog: Logger = { info: silence, warn: silence, error: silence, v: () => silent, with: () => noLog }
