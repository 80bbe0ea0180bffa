/**
 * Keeps history by age and size (L3), so that clients can read the past: replaces the regular compaction where the flags --history and --history-size are set.
 * Times of revisions are kept in the store, one key a minute below /skiff/revisions/, and survive restarts; the key's own revision is the mark. With each mark, a
 * server takes the turn of the compaction, so that servers over the same store that keep history for an interval only do not compact it.
 * Upstream has no counterpart: there, history ends with the compaction interval.
 */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { formatTime } from '#base/time'
import type { RaftState, Revision, Store } from '#store/store'
import { isStoreError } from '#store/storeError'
import { lastTurn, turnTaken } from './compactionTurn.ts'
import { defaultCompactionIntervalMs } from './compactor.ts'
import type { RevisionMark, RevisionTimes } from './revisionTimes.ts'

export interface HistoryLimits {
  /** Age of the oldest state that can be read. */
  readonly keepMs: number
  /** Bytes of replaced versions: beyond, the oldest are given up before their age. */
  readonly maxBytes: number
}

export interface HistoryDeps {
  readonly store: Store
  readonly times: RevisionTimes
  readonly clock: Clock
  readonly log: Logger
}

interface Keeping extends HistoryDeps {
  /** The newest revision that was compacted. */
  compacted: Revision
}

const tablePrefix = '/skiff/revisions/'
const tableEnd = '/skiff/revisions0'
const minuteMs = 60_000
const sizeCheckMs = 10_000
const pageKeys = 2_000
/** Share of the marks that one step gives up when history is too large, and how many steps one check takes at most. */
const stepShare = 0.1
const mostSteps = 30
/** Where the store does not count history apart, its objects alone may exceed the limit: history of this age stays, for lists that are read by pages. */
const leastAgeMs = defaultCompactionIntervalMs

export async function keepHistory(deps: HistoryDeps, limits: HistoryLimits, signal: AbortSignal): Promise<void> {
  const { clock, log } = deps
  const keeping: Keeping = { ...deps, compacted: 0 }
  let isRestored = false
  let minute = 0
  while (!signal.aborted) {
    try {
      if (!isRestored) {
        deps.times.restore(await storedTimes(deps.store))
        keeping.compacted = (await lastTurn(deps.store)).compacted
      }
      isRestored = true
      // Compaction comes first: it also has to free the space of a store that refuses writes.
      const now = Math.floor(clock.now() / minuteMs)
      if (now !== minute) await compactBefore(keeping, deps.times.at(clock.now() - limits.keepMs))
      await shrink(keeping, limits.maxBytes)
      if (now !== minute) await markMinute(keeping)
      minute = now
    } catch (error) {
      if (!isStoreError(error, 'closed')) log.error(error, 'Keeping the history failed')
    }
    await clock.sleep(sizeCheckMs, signal).catch(() => undefined)
  }
}

/** The times that the store keeps, in the order of their revisions. */
export async function storedTimes(store: Store): Promise<readonly RevisionMark[]> {
  const marks: RevisionMark[] = []
  for (let from = tablePrefix; ; ) {
    const { kvs, more } = await store.range(from, tableEnd, { keysOnly: true, limit: pageKeys })
    for (const { key, modRevision } of kvs) marks.push({ atMs: Number(key.slice(tablePrefix.length)) * minuteMs, revision: modRevision })
    const last = kvs.at(-1)
    if (!more || !last) break
    from = `${last.key}\0`
  }
  return marks.sort((a, b) => a.revision - b.revision)
}

/** One key a minute, whichever of several servers writes it first; keys of forgotten minutes are deleted with it. */
async function markMinute({ store, times, clock, compacted }: Keeping): Promise<void> {
  const keyOf = (timeMs: number) => tablePrefix + String(Math.floor(timeMs / minuteMs)).padStart(12, '0')
  const nowMs = clock.now()
  const key = keyOf(nowMs)
  const { oldest } = times
  await store.transact({
    compare: [{ key, target: 'version', op: '=', value: 0 }],
    success: [
      { type: 'put', key, value: Buffer.alloc(0) },
      turnTaken(compacted),
      ...(oldest ? [{ type: 'delete' as const, from: tablePrefix, to: keyOf(Math.min(oldest.atMs, nowMs)) }] : []),
    ],
  })
}

async function shrink(keeping: Keeping, maxBytes: number): Promise<void> {
  const { store, times, clock, log } = keeping
  for (let step = 0; step < mostSteps; step++) {
    const { bytes, isExact } = await historyBytes(store)
    if (bytes <= maxBytes) return
    const before = times.oldest
    const next = times.atShare(stepShare)
    // What is left was written within a second.
    if (!before || !next || next.revision <= before.revision) return
    if (!isExact && next.atMs > clock.now() - leastAgeMs) return
    await compactBefore(keeping, next.revision)
    const [from, to] = [formatTime(before.atMs), formatTime(next.atMs)]
    log.info('History was larger than its limit: the oldest part was given up', { bytes, maxBytes, from, to })
  }
}

async function compactBefore(keeping: Keeping, revision: Revision | undefined): Promise<void> {
  const { store, times } = keeping
  if (revision === undefined || revision <= 1) return
  try {
    await store.compact(revision)
  } catch (error) {
    // Another server compacted it, or this one before its restart.
    if (!isStoreError(error, 'compacted')) throw error
  }
  keeping.compacted = Math.max(keeping.compacted, revision)
  times.forgetBefore(revision)
}

/** Where the store does not count history apart, all data in use. */
async function historyBytes(store: Store): Promise<{ readonly bytes: number; readonly isExact: boolean; readonly raft?: RaftState | undefined }> {
  const { historyBytes: bytes, liveBytes, raft } = await store.size()
  return { bytes: bytes ?? liveBytes, isExact: bytes !== undefined, raft }
}

export interface HistoryStatus {
  readonly revision: Revision
  /** The oldest revision that can be read, as far as the server knows. */
  readonly oldestRevision: Revision
  /** Since when times have revisions, in milliseconds since the epoch. */
  readonly oldestMs?: number | undefined
  readonly bytes: number
  readonly raft?: RaftState | undefined
}

export async function historyStatus({ store, times }: Pick<HistoryDeps, 'store' | 'times'>): Promise<HistoryStatus> {
  const [revision, { bytes, raft }, compacted] = await Promise.all([store.latestRevision(), historyBytes(store), compactRevision(store)])
  if (compacted !== undefined) times.forgetBefore(compacted)
  const { oldest, first } = times
  return { revision, oldestRevision: compacted ?? first ?? revision, oldestMs: oldest?.atMs, bytes, raft }
}

/** The revision of the last compaction; undefined when the store does not say, as etcd does not. */
async function compactRevision(store: Store): Promise<Revision | undefined> {
  try {
    await store.range(tablePrefix, undefined, { revision: 1, limit: 1 })
    return 1
  } catch (error) {
    if (isStoreError(error, 'compacted')) return error.revision
    throw error
  }
}
