/** How gRPC calls fail (L1). A file of its own, so that the simulated runtime fails in the same way without loading the wire's code. */
import { messageOf } from '#base/messageOf'

/** By number. */
export const statusNames = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
] as const

export type StatusName = (typeof statusNames)[number]

/** A call that did not end with OK: the status by name, and the description from the other side, which is also the message. */
export class GrpcError extends Error {
  readonly code: StatusName
  readonly description: string
  /** The request never left: no connection was there to send it on. */
  isUnsent = false

  constructor(code: StatusName, description: string, cause?: unknown) {
    super(description, { cause })
    this.name = 'GrpcError'
    this.code = code
    this.description = description
  }

  /** The status as Go spells it: `Unavailable`. Callers that do not know this class read it, too. */
  get grpcStatus(): string {
    return goCodeName(this.code)
  }

  /** The same failure, with the message as Go's client prints it. */
  inGoWords(): GrpcError {
    const error = new GrpcError(this.code, this.description, this)
    error.message = rpcErrorText(this)
    error.isUnsent = this.isUnsent
    return error
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

/** The message of anything thrown; of a failed call as Go's client prints it, with its code. */
export function rpcErrorText(error: unknown): string {
  if (error instanceof GrpcError) return `rpc error: code = ${error.grpcStatus} desc = ${error.description}`
  return messageOf(error)
}
