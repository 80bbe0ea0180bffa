/** Exit codes of the command line (L4): documented, frozen, tested. Tools branch on them. */
export const exitCodes = {
  ok: 0,
  internal: 1,
  usage: 2,
  notFound: 3,
  alreadyExists: 4,
  timeout: 5,
  unmetPrerequisite: 6,
  conflict: 7,
  interrupted: 130,
} as const

export type ExitCode = keyof typeof exitCodes

/** A failure with its exit code, one line of cause, lines of evidence, and what to do about it. */
export class CommandError extends Error {
  readonly exit: ExitCode
  readonly hint: string | undefined
  /** Such as lines of logs. */
  readonly details: readonly string[]
  /** The cluster is incomplete, but its API can be used. */
  readonly serves: boolean

  constructor(exit: ExitCode, message: string, options: { hint?: string; details?: readonly string[]; serves?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'CommandError'
    this.exit = exit
    this.hint = options.hint
    this.details = options.details ?? []
    this.serves = options.serves ?? false
  }
}
