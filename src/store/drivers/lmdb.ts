/**
 * The embedded store (L2): one LMDB file. Every group of writes is one flush, and nothing is acknowledged before it; the index is rebuilt at open.
 * Only copy-on-write LMDB with synced commits is crash-safe: never noSync, mapAsync or useWritemap.
 */
import { statSync } from 'node:fs'
import { type Database, open, type RootDatabase } from 'lmdb'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Backend, BackendChange, BackendState } from '../backend.ts'
import type { Version } from '../mvcc/keyHistory.ts'
import { createMvccStore } from '../mvccStore.ts'
import type { Store } from '../store.ts'
import { storeError } from '../storeError.ts'
import { changesIn, decodeRecord, encodeRecord } from './record.ts'

export interface LmdbStoreOptions {
  /** The file; a lock file appears beside it. Its folder exists. */
  readonly path: string
  readonly clock: Clock
  readonly log: Logger
  readonly maxLogBytes?: number | undefined
  readonly quotaBytes?: number | undefined
}

interface Files {
  readonly path: string
  readonly root: RootDatabase
  /** Revision → record. */
  readonly records: Database<Buffer, number>
  /** Lease id → seconds. */
  readonly leases: Database<number, number>
  readonly facts: Database<number, string>
}

/** Opens or creates the store in one file. @throws StoreError 'unavailable' when it cannot be opened. */
export async function openLmdbStore({ path, clock, log, maxLogBytes = 32 << 20, quotaBytes }: LmdbStoreOptions): Promise<Store> {
  const files = openFiles(path)
  return createMvccStore(lmdbBackend(files), readState(files), { clock, log, maxLogBytes, quotaBytes })
}

function openFiles(path: string): Files {
  try {
    const root = open({ path, noSubdir: true, maxDbs: 4 })
    return {
      path,
      root,
      records: root.openDB({ name: 'records', encoding: 'binary' }),
      leases: root.openDB({ name: 'leases' }),
      facts: root.openDB({ name: 'facts' }),
    }
  } catch (cause) {
    throw storeError('unavailable', { cause })
  }
}

function readState({ records, leases, facts }: Files): BackendState {
  const versions: Version[] = []
  for (const { key, value } of records.getRange()) for (const version of decodeRecord(value, key, () => false)) versions.push(version)
  return {
    versions,
    leases: [...leases.getRange()].map(({ key, value }) => ({ id: key, ttlSeconds: value })),
    compactRevision: facts.get('compactRevision') ?? 0,
  }
}

function lmdbBackend(files: Files): Backend {
  const { path, root, records } = files
  let totalBytes = statSync(path).size
  return {
    async append(changes) {
      await flushed(root, () => {
        for (const change of changes) write(files, change)
      })
      totalBytes = statSync(path).size
    },
    forget: (versions) => forget(files, versions),
    load({ modRevision, sub }) {
      const record = records.getBinary(modRevision)
      return record && decodeRecord(record, modRevision, (one) => one === sub).find((version) => version.sub === sub)?.value
    },
    totalBytes: () => totalBytes,
    close: () => root.close(),
  }
}

/** One commit, resolved when it is on the disk: `await batch` alone would only mean committed. */
async function flushed(root: RootDatabase, writes: () => void): Promise<void> {
  try {
    await root.batch(writes)
    await root.flushed
  } catch (error) {
    throw storeError(isNoSpace(error) ? 'noSpace' : 'unavailable', { cause: error })
  }
}

function isNoSpace(error: unknown): boolean {
  const { code, message = '', commitError } = error as { code?: unknown; message?: string; commitError?: unknown }
  return code === 'ENOSPC' || code === 28 || /no space|MDB_MAP_FULL|quota/i.test(message) || (commitError !== undefined && isNoSpace(commitError))
}

function write({ records, leases, facts }: Files, change: BackendChange): void {
  // The batch as a whole reports failure; each promise would report it once more.
  const ignore = (promise: Promise<boolean>) => void promise.catch(() => {})
  if (change.type === 'revision') ignore(records.put(change.revision, encodeRecord(change.versions)))
  else if (change.type === 'grantLease') ignore(leases.put(change.id, change.ttlSeconds))
  else if (change.type === 'revokeLease') ignore(leases.remove(change.id))
  else ignore(facts.put('compactRevision', change.revision))
}

/** A record whose changes are not all forgotten is written again with the rest. */
async function forget({ root, records }: Files, versions: readonly Version[]): Promise<void> {
  const doomed = new Map<number, Set<number>>()
  for (const { modRevision, sub } of versions) {
    const subs = doomed.get(modRevision)
    if (subs) subs.add(sub)
    else doomed.set(modRevision, new Set([sub]))
  }
  await flushed(root, () => {
    for (const [revision, subs] of doomed) {
      const record = records.getBinary(revision)
      if (!record) continue
      const kept = changesIn(record) === subs.size ? [] : decodeRecord(record, revision, () => true).filter(({ sub }) => !subs.has(sub))
      const done = kept.length > 0 ? records.put(revision, encodeRecord(kept)) : records.remove(revision)
      done.catch(() => {})
    }
  })
}
