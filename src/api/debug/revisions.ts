/** The answer of /skiff/revisions and the limits of history (L1), for the server and for the commands that read the past. */
import { parseDuration } from '../machinery/duration.ts'
import { isQuantity, quantityValue } from '../machinery/quantity.ts'

export interface RevisionHistory {
  /** The newest. */
  readonly revision: number
  /** The oldest one that can be read, as far as the server knows. */
  readonly oldestRevision: number
  /** RFC 3339. Since when revisions can be found by time. Absent: the server knows no time. */
  readonly oldestTime?: string
  /** Size of the versions that were replaced and are still there; over etcd, of all data. */
  readonly bytes: number
  /** The consensus of etcd, as the member that answered knows it. Absent: the store has no members. */
  readonly raft?: { readonly isLeader: boolean; readonly hasLeader: boolean; readonly term: number; readonly index: number; readonly appliedIndex: number }
  /** The newest revision at the time that was asked for; absent when that is before `oldestTime`. */
  readonly at?: number
  /** RFC 3339, by revision that was asked for; null for an unknown time. */
  readonly times?: Readonly<Record<string, string | null>>
}

export const longestHistoryMs = 720 * 3_600_000
const shortestHistoryMs = 60_000
const leastHistoryBytes = 2 ** 20
export const expectedHistory = 'from 1m to 720h'
export const expectedHistorySize = 'at least 1Mi, such as 400Mi'

/** Whether the text is a value of --history. */
export function isHistory(text: string): boolean {
  const ms = parseDuration(text)
  return ms !== undefined && (ms === 0 || (ms >= shortestHistoryMs && ms <= longestHistoryMs))
}

/** Whether the text is a value of --history-size. */
export function isHistorySize(text: string): boolean {
  return isQuantity(text) && quantityValue(text) >= leastHistoryBytes
}
