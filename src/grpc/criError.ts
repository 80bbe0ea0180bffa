/** How CRI calls fail (L1). By itself, so that the simulated runtime can fail the same way without loading a gRPC library. */

/** A failed call: the gRPC code by name (NOT_FOUND, DEADLINE_EXCEEDED, UNAVAILABLE, …) and the runtime's own words. */
export class CriError extends Error {
  readonly code: string

  constructor(code: string, message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'CriError'
    this.code = code
  }
}

/** The name of a gRPC code as Go's client prints it: `DEADLINE_EXCEEDED` is `DeadlineExceeded`. */
export function goCodeName(code: string): string {
  if (code === 'CANCELLED') return 'Canceled'
  return code
    .split('_')
    .map((word) => word.charAt(0) + word.slice(1).toLowerCase())
    .join('')
}

/** What went wrong; of a failed call as Go's client prints it, with its code. */
export function rpcErrorText(error: unknown): string {
  if (error instanceof CriError) return `rpc error: code = ${goCodeName(error.code)} desc = ${error.message}`
  return error instanceof Error ? error.message : String(error)
}
