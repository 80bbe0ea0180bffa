/** Why a volume was not created, and whether the driver may still be creating it (L3, pure). Upstream: external-provisioner, checkError. */
import { GrpcError } from '#grpc/grpcError'

/**
 * `finished`: no volume exists, and none will without another call. `background`: the driver may be at work, so the call is repeated even when the claim is
 * gone. `unchanged`: the driver was not called; what the last call left is so still. `reschedule`: as finished; another node may have room.
 */
export type ProvisioningState = 'finished' | 'background' | 'unchanged' | 'reschedule'

export class ProvisioningError extends Error {
  readonly state: ProvisioningState

  constructor(state: ProvisioningState, message: string, cause?: unknown) {
    super(message, { cause })
    this.state = state
  }
}

const underWay = new Set(['CANCELLED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE', 'ABORTED'])

/** @param mayReschedule whether another node makes a difference to the driver */
export function stateAfter(error: unknown, mayReschedule: boolean): ProvisioningState {
  // An answer that cannot be read does not tell whether there is a volume.
  if (!(error instanceof GrpcError) || underWay.has(error.code)) return 'background'
  return mayReschedule && error.code === 'RESOURCE_EXHAUSTED' ? 'reschedule' : 'finished'
}

/** The request itself is refused: every repetition is, until the class changes. */
export const isInfeasible = (error: unknown) => error instanceof GrpcError && error.code === 'INVALID_ARGUMENT'
