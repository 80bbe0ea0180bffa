/** Lease ids in decimal text, as gRPC messages carry them (L2): they have 64 bits, of which a number holds 53. */
import type { LeaseId } from './store.ts'

/** @param text an integer; '0' is no lease */
export function leaseIdOf(text: string): LeaseId {
  const id = Number(text)
  return Number.isSafeInteger(id) ? id : BigInt(text)
}
