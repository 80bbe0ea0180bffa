/** Which transactions may let the store grow (L2, pure). */
import type { Transaction } from './store.ts'

/** True when either branch puts a value: before the compares are judged, both may be carried out. */
export function wantsSpace({ success, failure }: Pick<Transaction, 'success' | 'failure'>): boolean {
  return success.some((op) => op.type === 'put') || (failure?.some((op) => op.type === 'put') ?? false)
}
