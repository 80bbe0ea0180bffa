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
