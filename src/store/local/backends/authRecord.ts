/**
 * Changes of users and roles in the journal (L2). Layout, little endian: u32 count; per change: u8 bucket, u8 1 where there is a value, u32 key length, u32 value
 * length, key, value.
 */
import { type AuthChange, authBuckets } from '../../store.ts'

const head = 4
const changeHead = 10

/** In bytes. */
export function authChangesLength(changes: readonly AuthChange[]): number {
  return changes.reduce((sum, { key, value }) => sum + changeHead + key.length + (value?.length ?? 0), head)
}

/** @returns where it ends in `out` */
export function writeAuthChanges(out: Buffer, start: number, changes: readonly AuthChange[]): number {
  let at = out.writeUInt32LE(changes.length, start)
  for (const { bucket, key, value } of changes) {
    at = out.writeUInt8(authBuckets.indexOf(bucket), at)
    at = out.writeUInt8(value ? 1 : 0, at)
    at = out.writeUInt32LE(key.length, at)
    at = out.writeUInt32LE(value?.length ?? 0, at)
    at += out.write(key, at, 'latin1')
    if (!value) continue
    out.set(value, at)
    at += value.length
  }
  return at
}

/** The values are copies. */
export function decodeAuthChanges(record: Buffer): AuthChange[] {
  const changes: AuthChange[] = []
  for (let left = record.readUInt32LE(0), at = head; left > 0; left--) {
    const bucket = authBuckets[record.readUInt8(at)]
    if (!bucket)
      throw new Error('the journal of the store has users or roles in a form that this version does not know: open it with the version that wrote it')
    const keyAt = at + changeHead
    const valueAt = keyAt + record.readUInt32LE(at + 2)
    const end = valueAt + record.readUInt32LE(at + 6)
    const value = record.readUInt8(at + 1) === 1 ? new Uint8Array(record.subarray(valueAt, end)) : undefined
    changes.push({ bucket, key: record.toString('latin1', keyAt, valueAt), value })
    at = end
  }
  return changes
}
