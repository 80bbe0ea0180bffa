import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeKeyValue, decodeLease, decodeRevisionKey, encodeKeyValue, encodeLease, revisionKey, uint64 } from './encoding.ts'

const change = { key: 'a', value: new Uint8Array(0), createRevision: 2, modRevision: 2, version: 1, lease: 0, sub: 0 }

/** By the field numbers of mvccpb.KeyValue; fields without a value are left out, and a deletion has only its key. */
const encodings: readonly {
  readonly name: string
  readonly change: typeof change | (Omit<typeof change, 'lease'> & { lease: bigint })
  readonly want: string
}[] = [
  { name: 'a key without a value', change, want: '0a0161100218022001' },
  { name: 'a value', change: { ...change, value: Buffer.from('xyz'), modRevision: 300, version: 5 }, want: '0a0161100218ac0220052a0378797a' },
  { name: 'a lease of 63 bits', change: { ...change, lease: 0x7587a2c5b1f0e104n }, want: '0a01611002180220013084c2c38fdbd8e8c375' },
  { name: 'a deletion', change: { ...change, version: 0, createRevision: 0, modRevision: 9 }, want: '0a0161' },
]

for (const { name, change: one, want } of encodings) {
  test(`ETC-20 ${name} is encoded as etcd encodes it`, () => assert.equal(encodeKeyValue(one).toString('hex'), want))
}

test('ETC-20 a change is decoded as it was encoded, whatever its numbers and bytes', () => {
  const changes = [
    change,
    { ...change, key: '\xff\x00\x80', value: new Uint8Array([0, 255]), createRevision: 2 ** 40, modRevision: 2 ** 52, version: 128, lease: 2n ** 62n + 1n },
  ]
  for (const { sub: _, ...one } of changes) assert.deepEqual({ ...decodeKeyValue(encodeKeyValue({ ...one, sub: 0 })) }, one)
})

test('ETC-20 a lease is decoded as it was encoded', () => {
  for (const lease of [
    { id: 7, ttlSeconds: 60 },
    { id: 2n ** 62n + 3n, ttlSeconds: 9_000_000_000 },
    { id: -5, ttlSeconds: 60 },
    { id: -(2n ** 62n), ttlSeconds: 60 },
  ])
    assert.deepEqual(decodeLease(encodeLease(lease)), lease)
})

test('ETC-20 the key of a lease with a negative id is its two’s complement', () => {
  assert.deepEqual(
    [uint64(-5), uint64(-5n)].map((key) => key.toString('hex')),
    ['fffffffffffffffb', 'fffffffffffffffb'],
  )
})

test('ETC-20 a message that ends within an unknown field is refused', () => {
  // Field 15 with eight bytes, of which three are there.
  assert.throws(() => decodeLease(Buffer.from([0x79, 1, 2, 3])), /ends 5 bytes too early/)
})

const keys: readonly { readonly name: string; readonly key: Buffer; readonly want: unknown }[] = [
  { name: 'of a put', key: revisionKey(2 ** 40 + 1, 3), want: { main: 2 ** 40 + 1, sub: 3, isTombstone: false } },
  { name: 'of a deletion', key: revisionKey(5, 0, true), want: { main: 5, sub: 0, isTombstone: true } },
  { name: 'that is too short', key: Buffer.alloc(16), want: undefined },
  { name: 'without the separator', key: Buffer.alloc(17), want: undefined },
  { name: 'with another mark', key: Buffer.concat([revisionKey(1, 0), Buffer.from('x')]), want: undefined },
  { name: 'with a negative revision', key: Buffer.concat([Buffer.alloc(8, 0xff), Buffer.from('_'), Buffer.alloc(8)]), want: undefined },
]
for (const { name, key, want } of keys) test(`ETC-20 a revision's key ${name} is decoded`, () => assert.deepEqual(decodeRevisionKey(key), want))
