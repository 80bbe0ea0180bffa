/**
 * The keys and values of etcd's buckets (L2, pure): revisions as keys, changes and leases as messages. The bytes are exactly etcd's, because hashes are made of
 * them. Upstream: etcd server/storage/mvcc/revision.go, api/v3 mvccpb/kv.proto, server/lease/leasepb/lease.proto (v3.6).
 */
import { ProtoReader } from '#grpc/protoWire'
import { leaseIdOf } from '../leaseId.ts'
import type { KeyValue, LeaseId, Revision, StoredChange } from '../store.ts'

const noBytes = new Uint8Array(0)

const revisionBytes = 17
const tombstoneMark = 't'.charCodeAt(0)
const separator = '_'.charCodeAt(0)

/** @returns 17 bytes, and one more for a deletion */
export function revisionKey(main: Revision, sub: number, isTombstone = false): Buffer {
  const key = Buffer.allocUnsafe(isTombstone ? revisionBytes + 1 : revisionBytes)
  writeUInt64(key, main, 0)
  key[8] = separator
  writeUInt64(key, sub, 9)
  if (isTombstone) key[revisionBytes] = tombstoneMark
  return key
}

export interface RevisionKey {
  readonly main: Revision
  readonly sub: number
  readonly isTombstone: boolean
}

export function isTombstoneKey(key: Buffer): boolean {
  return key.length === revisionBytes + 1 && key[revisionBytes] === tombstoneMark
}

/** Undefined when the bytes are no such key. */
export function decodeRevisionKey(key: Buffer): RevisionKey | undefined {
  const isTombstone = isTombstoneKey(key)
  if ((key.length !== revisionBytes && !isTombstone) || key[8] !== separator) return undefined
  const [main, sub] = [readUInt64(key, 0), readUInt64(key, 9)]
  return Number.isSafeInteger(main) && Number.isSafeInteger(sub) ? { main, sub, isTombstone } : undefined
}

/** Exact up to 2^53; a greater one is no safe integer either. */
function readUInt64(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) * 2 ** 32 + bytes.readUInt32BE(at + 4)
}

/** A whole number in eight bytes, the highest first; a negative one as its two's complement. */
export function uint64(value: number | bigint): Buffer {
  const bytes = Buffer.allocUnsafe(8)
  if (typeof value === 'bigint' || value < 0) bytes.writeBigUInt64BE(BigInt.asUintN(64, BigInt(value)))
  else writeUInt64(bytes, value, 0)
  return bytes
}

function writeUInt64(bytes: Buffer, value: number, at: number): void {
  bytes.writeUInt32BE(Math.floor(value / 2 ** 32), at)
  bytes.writeUInt32BE(value % 2 ** 32, at + 4)
}

/** mvccpb.KeyValue; of a deletion only the key. */
export function encodeKeyValue({ key, value, createRevision, modRevision, version, lease }: StoredChange): Buffer {
  const isTombstone = version === 0
  const numbers = isTombstone
    ? []
    : ([
        [0x10, createRevision],
        [0x18, modRevision],
        [0x20, version],
      ] as const)
  const leaseBytes = isTombstone || Number(lease) === 0 ? 0 : 1 + varintBytes(lease)
  let length = fieldBytes(key.length) + (value.length > 0 ? fieldBytes(value.length) : 0) + leaseBytes
  for (const [, number] of numbers) length += 1 + varintBytes(number)
  const out = Buffer.allocUnsafe(length)
  let at = writeHead(out, 0x0a, key.length, 0)
  at += out.write(key, at, 'latin1')
  for (const [tag, number] of numbers) at = writeHead(out, tag, number, at)
  if (value.length > 0) {
    at = writeHead(out, 0x2a, value.length, at)
    out.set(value, at)
    at += value.length
  }
  if (leaseBytes > 0) writeHead(out, 0x30, lease, at)
  return out
}

/** leasepb.Lease. */
export function encodeLease({ id, ttlSeconds }: { readonly id: LeaseId; readonly ttlSeconds: number }): Buffer {
  const out = Buffer.allocUnsafe(2 + varintBytes(id) + varintBytes(ttlSeconds))
  writeHead(out, 0x10, ttlSeconds, writeHead(out, 0x08, id, 0))
  return out
}

const fieldBytes = (length: number) => 1 + varintBytes(length) + length

function varintBytes(value: number | bigint): number {
  if (typeof value === 'bigint' || value < 0) {
    let bytes = 1
    for (let rest = BigInt.asUintN(64, BigInt(value)) >> 7n; rest > 0n; rest >>= 7n) bytes++
    return bytes
  }
  let bytes = 1
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) bytes++
  return bytes
}

function writeHead(out: Buffer, tag: number, value: number | bigint, from: number): number {
  let at = from
  out[at++] = tag
  if (typeof value === 'bigint' || value < 0) {
    let rest = BigInt.asUintN(64, BigInt(value))
    for (; rest > 0x7fn; rest >>= 7n) out[at++] = Number(rest & 0x7fn) | 0x80
    out[at++] = Number(rest)
    return at
  }
  let rest = value
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) out[at++] = (rest % 128) | 0x80
  out[at++] = rest
  return at
}

/** A change without its place in the history. @throws Error when the message is damaged */
export function decodeKeyValue(bytes: Buffer): KeyValue {
  const found = { key: '', value: noBytes as Uint8Array, createRevision: 0, modRevision: 0, version: 0, lease: 0 as LeaseId }
  const reader = new ProtoReader(bytes)
  while (reader.hasMore) {
    const tag = reader.uint32()
    if (tag === 0x0a) found.key = reader.latin1()
    else if (tag === 0x10) found.createRevision = reader.int64()
    else if (tag === 0x18) found.modRevision = reader.int64()
    else if (tag === 0x20) found.version = reader.int64()
    // The same memory: a source hands out bytes that do not change later.
    else if (tag === 0x2a) found.value = reader.view()
    else if (tag === 0x30) found.lease = leaseIdOf(reader.int64Text())
    else reader.skip(tag & 7)
  }
  return found
}

/** @throws Error when the message is damaged */
export function decodeLease(bytes: Buffer): { readonly id: LeaseId; readonly ttlSeconds: number } {
  const found = { id: 0 as LeaseId, ttlSeconds: 0 }
  const reader = new ProtoReader(bytes)
  while (reader.hasMore) {
    const tag = reader.uint32()
    if (tag === 0x08) found.id = leaseIdOf(reader.int64Text())
    else if (tag === 0x10) found.ttlSeconds = reader.int64()
    else reader.skip(tag & 7)
  }
  return found
}
