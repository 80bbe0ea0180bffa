/**
 * A backend behind a journal (L2): changes are durable once they are in the journal, which is one short write, and move to the backend many at a
 * time. The backend takes changes directly when space is short, when the journal cannot be written, and when they are longer than a segment.
 */
import { append } from '#base/extremes'
import type { Logger } from '#base/log'
import type { LeaseId, Revision } from '../../store.ts'
import type { Backend, BackendChange } from '../backend.ts'
import type { Version } from '../mvcc/keyHistory.ts'
import { authChangesLength, decodeAuthChanges, writeAuthChanges } from './authRecord.ts'
import type { Journal } from './journal.ts'
import { decodeRecord, recordLength, writeRecord } from './record.ts'

export interface RecordedChange {
  readonly change: BackendChange
  /** The versions of the change, where they are encoded already. */
  readonly record: Buffer | undefined
}

export interface CheckpointedBackend extends Backend {
  /** Resolves when the changes and the number of the journal entry that they reach up to are durable. */
  checkpoint(changes: readonly RecordedChange[], number: number): Promise<void>
}

export interface JournaledOptions {
  /** The number of the last entry that the backend has. */
  readonly number: number
  /** The number of the last entry in the journal. */
  readonly last: number
  /** The changes of the entries after `number`: the disk was too full to move them. */
  readonly pending: readonly RecordedChange[]
  /** Whether the disk may be too full for the backend to take what the journal holds. */
  isShortOfSpace(): boolean
  readonly log: Logger
}

export function journaledBackend(inner: CheckpointedBackend, journal: Journal, options: JournaledOptions): Backend {
  const { isShortOfSpace, log } = options
  /** Changes in the journal that are not yet moved to the backend. */
  let pending: RecordedChange[] = []
  /** Records of changes that are not yet moved or are being moved. */
  const records = new Map<Revision, Buffer>()
  let recordBytes = 0
  let last = options.last
  let moved = options.number
  /** The last entry of the segment that is not written now. */
  let boundary = last
  let moving: Promise<void> | undefined
  /** Until the first write knows how full the disk is. */
  let isDirect = true
  let isBroken = false

  const move = (): Promise<void> => {
    moving ??= moveAll().finally(() => {
      moving = undefined
    })
    return moving
  }

  const moveAll = async () => {
    const taken = pending
    const upTo = last
    pending = []
    try {
      await inner.checkpoint(taken, upTo)
    } catch (error) {
      pending = [...taken, ...pending]
      throw error
    }
    moved = upTo
    for (const { change, record } of taken) {
      if (change.type !== 'revision' || !record) continue
      records.delete(change.revision)
      recordBytes -= record.length
    }
  }

  const moveEverything = async () => {
    // A checkpoint under way does not include later changes.
    if (moving) await moving.catch(() => {})
    if (moved < last || pending.length > 0) await move()
  }

  /** The journal continues after the last entry that the backend has. */
  const appendDirectly = async (changes: readonly BackendChange[]) => {
    await moveEverything()
    await inner.append(changes)
    journal.startAfter(last)
    boundary = last
  }

  /** Returns false when the backend must take the changes directly. */
  const makeRoom = async (payload: Buffer): Promise<boolean> => {
    // A direct write first moves what is pending, and empties the journal.
    if (isDirect) isDirect = moved < last || isShortOfSpace()
    if (isBroken || isDirect || payload.length > journal.longest) return false
    if (journal.fits(payload)) return true
    isDirect = isShortOfSpace()
    if (isDirect) return false
    if (moved < boundary) await move()
    journal.turn()
    boundary = last
    move().catch((error: unknown) => log.warn('Moving the journal into the store failed; it is tried again', { error: String(error) }))
    return true
  }

  const keep = (changes: readonly RecordedChange[]) => {
    for (const { change, record } of changes) {
      if (change.type !== 'revision' || !record) continue
      records.set(change.revision, record)
      recordBytes += record.length
    }
    append(pending, changes)
  }

  keep(options.pending)
  return {
    gather: () => new Promise((resolve) => setImmediate(resolve)),
    async append(changes) {
      const { payload, entries } = encodeChanges(changes)
      if (!(await makeRoom(payload))) return appendDirectly(changes)
      try {
        last = await journal.append(payload)
      } catch (error) {
        log.error(error, 'Writing to the journal failed; the store goes on without it')
        // The backend records the entry as taken in, whether or not it reached the disk.
        last++
        isBroken = true
        return appendDirectly(changes)
      }
      keep(entries)
    },
    async forget(versions) {
      await moveEverything()
      await inner.forget(versions)
    },
    load(version) {
      const record = records.get(version.modRevision)
      return record ? valueIn(record, version) : inner.load?.(version)
    },
    read: (first, last) => inner.read?.(first, last) ?? [],
    settle: moveEverything,
    async defragment() {
      await moveEverything()
      await inner.defragment?.()
    },
    totalBytes: () => (inner.totalBytes?.() ?? 0) + recordBytes,
    async close() {
      await moveEverything().catch((error: unknown) =>
        log.warn('The journal holds what the store could not take; it is moved at the next start', { error: String(error) }),
      )
      journal.close()
      await inner.close()
    },
  }
}

function valueIn(record: Buffer, { modRevision, sub }: Version): Uint8Array | undefined {
  return decodeRecord(record, modRevision, (one) => one === sub).find((version) => version.sub === sub)?.value
}

const kinds = ['revision', 'grantLease', 'revokeLease', 'compact', 'auth'] as const
const changeHead = 21

/** The bit of the kind that says that the lease is an i64: etcd's own ids have 63 bits. */
const longLease = 0x80

/**
 * Per change, little endian: u8 kind, f64 revision or lease, f64 seconds of a lease, u32 length of the record, record. The records of the entries are parts of
 * the payload. The record of changes to users and roles is the one of ./authRecord.ts.
 */
function encodeChanges(changes: readonly BackendChange[]): { readonly payload: Buffer; readonly entries: readonly RecordedChange[] } {
  const lengths = changes.map(lengthOf)
  const payload = Buffer.allocUnsafeSlow(lengths.reduce((sum, length) => sum + changeHead + length, 0))
  const entries: RecordedChange[] = []
  let at = 0
  for (const [index, change] of changes.entries()) {
    at = writeChangeHead(payload, at, change, lengths[index] as number)
    const start = at
    if (change.type === 'revision') at = writeRecord(payload, at, change.versions)
    else if (change.type === 'auth') at = writeAuthChanges(payload, at, change.changes)
    entries.push({ change, record: change.type === 'revision' ? payload.subarray(start, at) : undefined })
  }
  return { payload, entries }
}

/** Bytes of the change's record. */
export function lengthOf(change: BackendChange): number {
  if (change.type === 'revision') return recordLength(change.versions)
  return change.type === 'auth' ? authChangesLength(change.changes) : 0
}

function subjectOf(change: BackendChange): LeaseId {
  if ('revision' in change) return change.revision
  return 'id' in change ? change.id : 0
}

/** @returns where it ends in `out` */
function writeChangeHead(out: Buffer, start: number, change: BackendChange, recordBytes: number): number {
  const subject = subjectOf(change)
  let at = out.writeUInt8(kinds.indexOf(change.type) + (typeof subject === 'bigint' ? longLease : 0), start)
  at = typeof subject === 'bigint' ? out.writeBigInt64LE(subject, at) : out.writeDoubleLE(subject, at)
  at = out.writeDoubleLE(change.type === 'grantLease' ? change.ttlSeconds : 0, at)
  return out.writeUInt32LE(recordBytes, at)
}

/** The changes of a journal entry. @throws Error when a newer version wrote it */
export function decodeChanges(payload: Buffer): RecordedChange[] {
  const changes: RecordedChange[] = []
  for (let at = 0; at < payload.length; ) {
    const first = payload.readUInt8(at)
    const type = kinds[first % longLease]
    if (!type) throw new Error(`the journal of the store has a change of the unknown kind ${first}: open it with the version of Skiff that wrote it`)
    const number = payload.readDoubleLE(at + 1)
    const id = first >= longLease ? payload.readBigInt64LE(at + 1) : number
    const ttlSeconds = payload.readDoubleLE(at + 9)
    const end = at + changeHead + payload.readUInt32LE(at + 17)
    if (type === 'revision') {
      const record = payload.subarray(at + changeHead, end)
      changes.push({ change: { type, revision: number, versions: decodeRecord(record, number, () => true) }, record })
    } else if (type === 'grantLease') changes.push({ change: { type, id, ttlSeconds }, record: undefined })
    else if (type === 'revokeLease') changes.push({ change: { type, id }, record: undefined })
    else if (type === 'auth') {
      changes.push({ change: { type, changes: decodeAuthChanges(payload.subarray(at + changeHead, end)) }, record: undefined })
    } else changes.push({ change: { type: 'compact', revision: number }, record: undefined })
    at = end
  }
  return changes
}
