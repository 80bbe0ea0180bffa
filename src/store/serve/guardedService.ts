/** A service whose calls are checked before it gets them (L2): see ./auth/guard.ts. */
import type { StreamCall } from '#grpc/grpcService'

export interface GuardedService {
  /** `permit` checks the request once more: where time passes between the check and the effect. */
  readonly methods?: Readonly<Record<string, (request: never, permit: () => void) => object | Promise<object>>>
  /** `permit` checks one request of the stream. */
  readonly streams?: Readonly<Record<string, (call: StreamCall<never>, permit: (request: object) => void) => Promise<void>>>
}
