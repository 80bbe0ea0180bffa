import assert from 'node:assert/strict'
import test from 'node:test'
import { Slab } from './slab.ts'

const blockBytes = 256 * 1024

test('pieces do not change until they are sent, however much is written meanwhile', () => {
  const slab = new Slab()
  const held: { fill: number; bytes: Buffer; sent: () => void }[] = []
  for (let i = 0; i < 2000; i++) {
    const fill = i % 251
    // Some are larger than a block.
    slab.add(Buffer.alloc(i % 100 === 0 ? blockBytes + 5 : 1 + ((i * 7919) % 9000), fill))
    for (const { bytes, sent } of slab.take()) held.push({ fill, bytes, sent })
    if (i % 3 === 0) held.splice((i * 31) % held.length, 1)[0]?.sent()
    if (i % 500 === 499) for (const { sent } of held.splice(0)) sent()
    for (const { fill: want, bytes } of held.slice(-40)) assert.ok(bytes.every((byte) => byte === want))
  }
  for (const { fill, bytes } of held) assert.ok(bytes.every((byte) => byte === fill))
})

test('blocks are reused when all of their pieces are sent', () => {
  const slab = new Slab()
  const blocks = new Set<ArrayBufferLike>()
  const inRound = (sizes: readonly number[]) => {
    const pieces = sizes.flatMap((size) => {
      slab.room(size)
      slab.add(Buffer.alloc(size))
      return slab.take()
    })
    for (const { bytes, sent } of pieces) {
      blocks.add(bytes.buffer)
      sent()
    }
  }
  for (let round = 0; round < 100; round++) inRound([100, 2000])
  assert.equal(blocks.size, 1, 'small ones need no other')
  for (let round = 0; round < 100; round++) inRound([200_000, 200_000, 524_600])
  assert.ok(blocks.size <= 6, `${blocks.size}`)
})

test('at most a few megabytes are kept for reuse', () => {
  const slab = new Slab()
  const round = () =>
    Array.from({ length: 64 }, () => {
      slab.add(Buffer.alloc(blockBytes))
      return slab.take()
    }).flat()
  const first = round()
  const before = new Set(first.map(({ bytes }) => bytes.buffer))
  for (const { sent } of first) sent()
  const again = round().filter(({ bytes }) => before.has(bytes.buffer))
  assert.ok(again.length >= 16 && again.length <= 18, `${again.length}`)
})
