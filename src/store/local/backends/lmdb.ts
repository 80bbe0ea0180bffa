/**
 * The backend of the embedded store (L2): one LMDB file and the journal in front of it. Every group of writes is one entry of the journal on the disk, and nothing is
 * acknowledged before it; entries move into LMDB many at a time. At open the index is rebuilt from both, then what is only in the journal moves.
 * Only copy-on-write LMDB with synced commits is crash-safe: never noSync, mapAsync or useWritemap.
 */
import { randomInt } from 'node:crypto'
import { closeSync, existsSync, fchmodSync, fstatSync, openSync } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Database, type Key, open as openLmdb, type RootDatabase } from 'lmdb'
import type { Clock } from '#base/clock'
import { append } from '#base/extremes'
import type { Logger } from '#base/log'
import type { AuthChange, AuthEntry, LeaseId } from '../../store.ts'
import { isStoreError, storeError } from '../../storeError.ts'
import { AuthEntries } from '../authEntries.ts'
import type { Backend, BackendChange, BackendState } from '../backend.ts'
import { isTombstone, type Version } from '../mvcc/keyHistory.ts'
import { freeBytes, hasReserve } from './fileReserve.ts'
import { Journal, syncFolder } from './journal.ts'
import { type CheckpointedBackend, decodeChanges, type JournaledOptions, journaledBackend, lengthOf, type RecordedChange } from './journaledBackend.ts'
import { changesIn, decodeRecord, encodeRecord } from './record.ts'
import { checkFormat, damaged, formatFor, isDamage, prepareFile } from './storeFormat.ts'

export interface LmdbBackendOptions {
  /** The file. Its folder must exist; a lock file and the journal (`-journal`) are created in it. */
  readonly path: string
  readonly clock: Clock
  readonly log: Logger
  readonly timings?: StoreTimings | undefined
}

/** How long the disk took, in seconds. */
export interface StoreTimings {
  /** A write of the journal. */
  onLogged(seconds: number): void
  /** A commit of LMDB. */
  onCommitted(seconds: number): void
}

interface Files {
  readonly path: string
  readonly root: RootDatabase
  /** Revision → record. */
  readonly records: Database<Buffer, number>
  /** Lease id → seconds. */
  readonly leases: Database<number, Key>
  readonly facts: Database<number, string>
  /** Bucket and key → value. It is the database of the facts: opening one more would write to a file that has none. */
  readonly auth: Database<Uint8Array, string>
}

/** Opens or creates the file, and reads what it holds. @throws StoreError 'unavailable' when it cannot be opened; Error naming the file when it is damaged */
export async function openLmdbBackend({ path, clock, log, timings }: LmdbBackendOptions): Promise<{ readonly backend: Backend; readonly state: BackendState }> {
  const files = openFiles(path)
  const lmdb = timings ? timed(lmdbBackend(files), clock, timings) : lmdbBackend(files)
  const journal = await openJournal(files, clock, timings)
  if (!journal) return { backend: lmdb, state: readUndamaged(files, []) }
  const left = changesLeftIn(files, journal)
  // Before anything is written: what a damaged file was given could not be read again, and the journal has it still.
  const state = readUndamaged(files, left.pending)
  const moved = await moveJournal(left, lmdb, journal, log).catch((error: unknown) => {
    throw isDamage(error) ? damaged(path, error) : error
  })
  return { backend: journaledBackend(lmdb, journal, { ...moved, isShortOfSpace: () => !lmdb.hasRoom(journalReserveBytes), log }), state }
}

const ownerOnly = 0o600
const segmentBytes = 2 << 20
/** A new store has a journal where the disk has this much. */
const leastFreeBytes = 8 * segmentBytes
/** LMDB takes what both segments hold with this much: twice their bytes, because a record may fill only half a page, and the rest of a commit. */
const journalReserveBytes = 5 * segmentBytes
/** What a commit writes besides the records: inner pages of the trees, the list of free pages. */
const commitBytes = 1 << 18
/** Puts leave this much, so that deletions work on a full disk. */
const deletionBytes = 1 << 20

/** Undefined: there is none, and no space for one. */
async function openJournal({ path, facts }: Files, clock: Clock, timings: StoreTimings | undefined): Promise<Journal | undefined> {
  const file = `${path}-journal`
  if (!existsSync(file) && freeBytes(path) < leastFreeBytes) return undefined
  try {
    let identity = facts.get('journalIdentity')
    if (identity === undefined) {
      identity = randomInt(1, 2 ** 32)
      await facts.put('journalIdentity', identity)
      await facts.flushed
    }
    return new Journal({ path: file, identity, segmentBytes, clock, onWritten: timings?.onLogged })
  } catch (cause) {
    throw storeError('unavailable', { cause })
  }
}

/** What a crash left in the journal alone. */
type LeftInJournal = Pick<JournaledOptions, 'number' | 'last' | 'pending'>

function changesLeftIn({ facts }: Files, journal: Journal): LeftInJournal {
  const number = facts.get('journalNumber') ?? 0
  const entries = journal.after(number)
  return { number, last: entries.at(-1)?.number ?? number, pending: entries.flatMap(({ payload }) => decodeChanges(payload)) }
}

/** Moves it to LMDB. Where the disk is too full for that, it stays pending. @returns what is left then */
async function moveJournal(left: LeftInJournal, lmdb: CheckpointedBackend, journal: Journal, log: Logger): Promise<LeftInJournal> {
  const { last, pending } = left
  try {
    if (pending.length > 0) await lmdb.checkpoint(pending, last)
  } catch (error) {
    if (!isStoreError(error, 'noSpace')) throw error
    log.warn('The disk is full: what is in the journal stays there, and writes are refused', { changes: pending.length })
    return left
  }
  journal.startAfter(last)
  return { number: last, last, pending: [] }
}

/** Opens or creates the file. @throws StoreError 'unavailable'; Error when this version cannot read the file */
export function openFiles(path: string): Files {
  const files = openAll(path)
  try {
    checkFormat(path, files.facts.get('format'))
    return files
  } catch (error) {
    void files.root.close()
    throw isDamage(error) ? damaged(path, error) : error
  }
}

function openAll(path: string): Files {
  try {
    for (const file of [path, `${path}-lock`]) makePrivate(file)
  } catch (cause) {
    throw storeError('unavailable', { cause })
  }
  prepareFile(path)
  try {
    // Without turn batching every promise of a write is ours: the batch's own would be rejected unheard when the disk is full.
    const root = openLmdb({ path, noSubdir: true, maxDbs: 4, eventTurnBatching: false })
    const facts = root.openDB<number, string>({ name: 'facts' })
    return {
      path,
      root,
      records: root.openDB({ name: 'records', encoding: 'binary' }),
      leases: root.openDB({ name: 'leases' }),
      facts,
      auth: facts as unknown as Files['auth'],
    }
  } catch (cause) {
    throw isDamage(cause) ? damaged(path, cause) : storeError('unavailable', { cause })
  }
}

/** LMDB creates files readable by all users, so create them first. It treats an empty file as a new one. */
function makePrivate(file: string): void {
  const descriptor = openSync(file, 'a', ownerOnly)
  try {
    if ((fstatSync(descriptor).mode & 0o777) !== ownerOnly) fchmodSync(descriptor, ownerOnly)
  } finally {
    closeSync(descriptor)
  }
}

/** @param pending changes that LMDB does not have yet @throws Error naming the file when LMDB or a record is damaged */
function readUndamaged(files: Files, pending: readonly RecordedChange[]): BackendState {
  try {
    return readState(files, pending)
  } catch (cause) {
    void files.root.close()
    throw damaged(files.path, cause)
  }
}

function readState(files: Files, pending: readonly RecordedChange[]): BackendState {
  const { records, leases, facts } = files
  const versions: Version[] = []
  const ttls = new Map([...leases.getRange()].map(({ key, value }) => [idOf(key), value]))
  const auth = new AuthEntries()
  auth.apply([...authEntriesIn(files)])
  let compactRevision = facts.get('compactRevision') ?? 0
  const addRecord = (record: Buffer, revision: number) =>
    append(
      versions,
      decodeRecord(record, revision, () => false),
    )
  for (const { key, value } of records.getRange()) addRecord(value, key)
  for (const { change, record } of pending) {
    if (change.type === 'revision') addRecord(record ?? encodeRecord(change.versions), change.revision)
    else if (change.type === 'grantLease') ttls.set(change.id, change.ttlSeconds)
    else if (change.type === 'revokeLease') ttls.delete(change.id)
    else if (change.type === 'auth') auth.apply(change.changes)
    else compactRevision = change.revision
  }
  return { versions, leases: [...ttls].map(([id, ttlSeconds]) => ({ id, ttlSeconds })), compactRevision, auth: auth.all() }
}

const authPrefix = 'auth/'
/** Keys of LMDB are short texts, and etcd's are any bytes. */
const authKeyOf = ({ bucket, key }: AuthChange) => `${authPrefix}${bucket}/${Buffer.from(key, 'latin1').toString('base64url')}`

function* authEntriesIn({ auth }: Files): Generator<AuthEntry> {
  for (const { key: text, value } of auth.getRange({ start: authPrefix, end: `${authPrefix}~` })) {
    const [, bucket, key = ''] = text.split('/') as [string, AuthEntry['bucket'], string]
    yield { bucket, key: Buffer.from(key, 'base64url').toString('latin1'), value }
  }
}

/**
 * Milliseconds from an announced commit to the end of its worker, with a wide margin. The binding (3.5.6) still uses the environment after it has announced
 * a commit, and has no callback for the end: closing the environment in between is a use after free, which ends the process.
 */
const workerEndMs = 20

/** Bytes of records that one call of read() decodes. */
const readBytes = 1 << 18

/** Changes of a checkpoint handed to LMDB in one turn of the event loop. */
const slice = 128

interface LmdbBackend extends CheckpointedBackend {
  /** Whether LMDB can write this many bytes more. */
  hasRoom(bytes: number): boolean
}

/** The same backend, whose commits are timed. */
function timed(backend: LmdbBackend, clock: Clock, { onCommitted }: StoreTimings): LmdbBackend {
  const measure =
    <Args extends unknown[]>(work: (...args: Args) => Promise<void>) =>
    async (...args: Args) => {
      const startedMs = clock.monotonicMs()
      await work(...args)
      onCommitted((clock.monotonicMs() - startedMs) / 1000)
    }
  return { ...backend, append: measure(backend.append), checkpoint: measure(backend.checkpoint) }
}

function lmdbBackend(opened: Files): LmdbBackend {
  /** Other ones after a defragmentation. */
  let files = opened
  const { path } = opened
  /** Asked for only where there is a quota, and then once per flush. */
  let totalBytes: number | undefined
  let failed = false
  let format = files.facts.get('format') ?? 1
  const durable = async (writes: readonly Promise<boolean>[], newFormat: number) => {
    failed = true
    await flushed(files.root, writes)
    failed = false
    totalBytes = undefined
    format = newFormat
  }
  const hasRoom = (bytes: number) => hasReserve(path, usedBytes(files), bytes)
  const needRoom = (bytes: number) => {
    if (!hasRoom(bytes + commitBytes)) throw storeError('noSpace')
  }
  const grows = (one: AuthChange) => (one.value?.length ?? 0) > (files.auth.get(authKeyOf(one))?.length ?? 0)
  const takesSpace = (change: BackendChange) => (change.type === 'auth' ? change.changes.some(grows) : isPut(change))
  /** Before the first change that needs a newer format. Opening writes nothing, so that a full disk does not prevent it. */
  const formatFirst = (needed: number) => (format === needed ? [] : [writeFormat(files, needed)])
  const formatWith = (changes: readonly RecordedChange[]) => Math.max(format, formatFor(changes.map(({ change }) => change)))
  return {
    hasRoom,
    async append(changes) {
      const entries = changes.map((change) => ({ change, record: undefined }))
      needRoom(pageBytes(entries) + (changes.some(takesSpace) ? deletionBytes : 0))
      const needed = formatWith(entries)
      await durable([...formatFirst(needed), ...entries.map((entry) => write(files, entry))], needed)
    },
    async checkpoint(changes, number) {
      needRoom(pageBytes(changes))
      const writes: Promise<boolean>[] = []
      const hand = (written: Promise<boolean>) => {
        // A failure while others are still handed over is reported by `durable`, at the end.
        written.catch(() => {})
        writes.push(written)
      }
      const needed = formatWith(changes)
      formatFirst(needed).forEach(hand)
      for (const [index, change] of changes.entries()) {
        hand(write(files, change))
        if (index % slice === slice - 1) await new Promise((resolve) => setImmediate(resolve))
      }
      // After all of them: LMDB keeps the order.
      writes.push(files.facts.put('journalNumber', number))
      await durable(writes, needed)
    },
    async forget(versions) {
      needRoom(0)
      await forget(files, versions)
    },
    load({ modRevision, sub }) {
      const record = files.records.getBinary(modRevision)
      return record && decodeRecord(record, modRevision, (one) => one === sub).find((version) => version.sub === sub)?.value
    },
    read(first, last) {
      const versions: Version[] = []
      let bytes = 0
      for (const { key, value } of files.records.getRange({ start: first, end: last + 1 })) {
        for (const version of decodeRecord(value, key, () => true)) versions.push(version)
        bytes += value.length
        if (bytes >= readBytes) break
      }
      return versions
    },
    async defragment() {
      const before = files
      files = await copyWithoutFreePages(before)
      totalBytes = undefined
      await removeFolder(copyFolderOf(path))
      syncFolder(dirname(path))
      await closeFiles(before)
    },
    totalBytes() {
      totalBytes ??= usedBytes(files)
      return totalBytes
    },
    async close() {
      const closing = closeFiles(files)
      // After a failed flush the binding never resolves. Everything acknowledged is on the disk, so closing does not wait for it.
      if (failed) closing.catch(() => {})
      else await closing
    },
  }
}

/** The bytes of the pages in use and of free pages between them. */
function usedBytes({ root }: Files): number {
  const { lastPageNumber, root: tree } = root.getStats() as { readonly lastPageNumber: number; readonly root: { readonly pageSize: number } }
  return (lastPageNumber + 1) * tree.pageSize
}

/** The most that LMDB's pages take for the records: one that is a little longer than half a page fills a whole one. */
const pageBytes = (changes: readonly RecordedChange[]) => changes.reduce((sum, { change }) => sum + 2 * lengthOf(change), 0)

function isPut(change: BackendChange): boolean {
  return change.type === 'grantLease' || (change.type === 'revision' && !change.versions.every(isTombstone))
}

/** Closes the file when no worker of the binding uses it. */
export async function closeFiles({ root }: Files): Promise<void> {
  await delay(workerEndMs)
  await root.close()
}

/** LMDB makes a copy that all users may read, so it gets a folder of its own. */
const copyFolderOf = (path: string) => `${path}-copy`
const removeFolder = (path: string) => rm(path, { recursive: true, force: true })

/** The copy is the store's file as soon as it is complete and on the disk; reads use the old one until then. */
async function copyWithoutFreePages({ path, root }: Files): Promise<Files> {
  const folder = copyFolderOf(path)
  const copy = join(folder, basename(path))
  let files: Files | undefined
  try {
    await removeFolder(folder)
    await mkdir(folder, { mode: 0o700 })
    await root.backup(copy, true)
    await syncFile(copy)
    files = openFiles(copy)
    // LMDB keeps its files open, so that they can be renamed. The store's own file comes last: after it nothing can fail.
    await rename(`${copy}-lock`, `${path}-lock`)
    await rename(copy, path)
  } catch (cause) {
    if (files) await closeFiles(files)
    await removeFolder(folder)
    throw storeError(isNoSpace(cause) ? 'noSpace' : 'unavailable', { cause })
  }
  return { ...files, path }
}

/** LMDB writes a copy without waiting for the disk. */
async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r')
  await file.sync().finally(() => file.close())
}

/**
 * Resolves when all the writes are on the disk: their promises alone would only mean committed. Writes of one turn share a commit; if they
 * should not, a crash still leaves a prefix of them, because LMDB keeps their order and a record holds a whole revision.
 */
export async function flushed(root: RootDatabase, writes: readonly Promise<boolean>[]): Promise<void> {
  try {
    // All of them are listened to: one that failed unheard would end the process.
    await Promise.all(writes)
    await root.flushed
  } catch (error) {
    const cause = await reasonOf(error)
    throw storeError(isNoSpace(cause) ? 'noSpace' : 'unavailable', { cause })
  }
}

/** LMDB's binding hides the reason in a promise inside the error. */
async function reasonOf(error: unknown): Promise<unknown> {
  const hidden = (error as { commitError?: unknown } | undefined)?.commitError
  if (!(hidden instanceof Promise)) return error
  return hidden.then(
    () => error,
    (reason: unknown) => reason,
  )
}

/** LMDB sees a write that a full disk cut short as an I/O error (EIO). */
function isNoSpace(error: unknown): boolean {
  const { code, message = '' } = error as { code?: unknown; message?: string }
  return code === 'ENOSPC' || code === 28 || code === 5 || /no space|MDB_MAP_FULL/i.test(message)
}

/** LMDB's binding takes bigints as keys, which its types leave out. */
const keyOf = (id: LeaseId) => id as Key

/** The binding gives a bigint back as a number where a double holds it exactly, and the id of the lease is a bigint there. */
const idOf = (key: Key): LeaseId => (typeof key === 'number' && !Number.isSafeInteger(key) ? BigInt(key) : (key as LeaseId))

/** Hands one change to LMDB, which commits in the order of the calls. */
export function write(files: Files, { change, record }: RecordedChange): Promise<boolean> {
  const { records, leases } = files
  if (change.type === 'revision') return records.put(change.revision, record ?? encodeRecord(change.versions))
  if (change.type === 'grantLease') return leases.put(keyOf(change.id), change.ttlSeconds)
  if (change.type === 'revokeLease') return leases.remove(keyOf(change.id))
  if (change.type === 'auth') return writeAuth(files, change.changes)
  return files.facts.put('compactRevision', change.revision)
}

/** In one commit, wholly or not at all. */
function writeAuth({ root, auth }: Files, changes: readonly AuthChange[]): Promise<boolean> {
  return root.batch(() => {
    for (const change of changes) void (change.value ? auth.put(authKeyOf(change), change.value) : auth.remove(authKeyOf(change)))
  })
}

export function writeFormat({ facts }: Files, format: number): Promise<boolean> {
  return facts.put('format', format)
}

/** A record whose changes are not all forgotten is written again with the rest. */
async function forget({ root, records }: Files, versions: readonly Version[]): Promise<void> {
  const doomed = new Map<number, Set<number>>()
  for (const { modRevision, sub } of versions) {
    const subs = doomed.get(modRevision)
    if (subs) subs.add(sub)
    else doomed.set(modRevision, new Set([sub]))
  }
  const writes = [...doomed].flatMap(([revision, subs]) => {
    const record = records.getBinary(revision)
    if (!record) return []
    const kept = changesIn(record) === subs.size ? [] : decodeRecord(record, revision, () => true).filter(({ sub }) => !subs.has(sub))
    return [kept.length > 0 ? records.put(revision, encodeRecord(kept)) : records.remove(revision)]
  })
  await flushed(root, writes)
}
