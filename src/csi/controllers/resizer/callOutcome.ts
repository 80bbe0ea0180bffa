/** What an error of the driver says about a resize or a modification (L3, pure). Upstream: external-resizer, pkg/util/util.go IsFinalError. */
import { GrpcError } from '#grpc/grpcError'

const maybeUnderWay = new Set(['CANCELLED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE', 'RESOURCE_EXHAUSTED', 'ABORTED'])
const infeasible = new Set(['INVALID_ARGUMENT', 'OUT_OF_RANGE', 'NOT_FOUND'])

/** The operation is surely not under way. */
export const isFinal = (error: unknown) => error instanceof GrpcError && !maybeUnderWay.has(error.code)

/** The volume cannot be resized so: the next try is far off. */
export const isInfeasibleSize = (error: unknown) => error instanceof GrpcError && infeasible.has(error.code)
