/**
 * How the embedded store writes one revision to disk (L2): all its changes in one record, so that a transaction is there wholly or not at all.
 * Layout, little endian: u32 count; per change: u32 sub, u32 version, f64 createRevision, f64 lease, u32 key length, u32 value length, key, value.
 * Version 0 is a tombstone. The record's key is the revision. The highest bit of sub says that the lease is an i64: etcd's own ids have 63 bits.
 */
import type { LeaseId, Revision } from '../../store.ts'
import type { Version } from '../mvcc/keyHistory.ts'

const head = 4
const changeHead = 32
const longLease = 2 ** 31

export function encodeRecord(versions: readonly Version[]): Buffer {
  const record = Buffer.allocUnsafeSlow(recordLength(versions))
  writeRecord(record, 0, versions)
  return record
}

/** In bytes. */
export function recordLength(versions: readonly Version[]): number {
  let length = head
  for (const { key, value } of versions) length += changeHead + key.length + (value?.length ?? 0)
  return length
}

/** @returns where the record ends in `out` */
export function writeRecord(out: Buffer, start: number, versions: readonly Version[]): number {
  let at = out.writeUInt32LE(versions.length, start)
  for (const { key, sub, version, createRevision, lease, value } of versions) {
    at = out.writeUInt32LE(typeof lease === 'bigint' ? sub + longLease : sub, at)
    at = out.writeUInt32LE(version, at)
    at = out.writeDoubleLE(createRevision, at)
    at = typeof lease === 'bigint' ? out.writeBigInt64LE(lease, at) : out.writeDoubleLE(lease, at)
    at = out.writeUInt32LE(key.length, at)
    at = out.writeUInt32LE(value?.length ?? 0, at)
    at += out.write(key, at, 'latin1')
    if (value) {
      out.set(value, at)
      at += value.length
    }
  }
  return at
}

export function changesIn(record: Buffer): number {
  return record.readUInt32LE(0)
}

/** The changes of a record; with their values (copied) where `keepValue` wants them. @throws RangeError when the bytes are no record */
export function decodeRecord(record: Buffer, modRevision: Revision, keepValue: (sub: number) => boolean): Version[] {
  const versions: Version[] = []
  let at = head
  for (let left = changesIn(record); left > 0; left--) {
    const first = record.readUInt32LE(at)
    const sub = first % longLease
    const keyLength = record.readUInt32LE(at + 24)
    const valueLength = record.readUInt32LE(at + 28)
    const keyAt = at + changeHead
    const valueAt = keyAt + keyLength
    versions.push({
      key: record.toString('latin1', keyAt, valueAt),
      modRevision,
      sub,
      version: record.readUInt32LE(at + 4),
      createRevision: record.readDoubleLE(at + 8),
      lease: leaseIn(record, at + 16, first >= longLease),
      bytes: keyLength + valueLength,
      value: keepValue(sub) ? new Uint8Array(record.subarray(valueAt, valueAt + valueLength)) : undefined,
    })
    at = valueAt + valueLength
    if (at > record.length) break
  }
  if (versions.length === 0 || at !== record.length) throw new RangeError(`the record of revision ${modRevision} is damaged`)
  return versions
}

function leaseIn(record: Buffer, at: number, isLong: boolean): LeaseId {
  return isLong ? record.readBigInt64LE(at) : record.readDoubleLE(at)
}
