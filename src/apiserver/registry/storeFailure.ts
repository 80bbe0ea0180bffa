/**
 * The errors for clients when the store cannot write or read (L3).
 * Upstream: apiserver/pkg/storage/errors, etcd3/errors.go (v1.36).
 */
import { StatusError } from '#api/machinery/status'
import type { StoreError } from '#store/store'

/** The error for clients when the store cannot write. Operators match on etcd's text for a full store. */
export function storeFailure(error: unknown): unknown {
  const { code } = error as StoreError
  if (code === 'noSpace') return new StatusError('', 'etcdserver: mvcc: database space exceeded', { cause: error })
  if (code === 'tooLarge') return tooLarge(error)
  // The write may still happen: clients must read again.
  if (code === 'unknownOutcome')
    return new StatusError('Timeout', 'Timeout: request did not complete within requested timeout - context deadline exceeded', { cause: error })
  if (code === 'unavailable' || code === 'closed') {
    return new StatusError('ServiceUnavailable', 'the store is not available', { details: { retryAfterSeconds: 1 }, cause: error })
  }
  return error
}

export const tooLarge = (cause?: unknown): StatusError => new StatusError('RequestEntityTooLarge', 'etcdserver: request is too large', { cause })
