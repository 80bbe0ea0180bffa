import assert from 'node:assert/strict'
import test from 'node:test'
import { seededRandom } from '#base/random'
import { Sending } from './stream.ts'

test('waiting chunks are sent in order, whatever their lengths and the room in the window', () => {
  const random = seededRandom(13)
  for (let round = 0; round < 500; round++) {
    const sending = new Sending()
    let value = 0
    const chunk = () => Buffer.from(Array.from({ length: [0, 1, 2, 3, 40][random.int(5)] ?? 0 }, () => value++ & 0xff))
    const wanted: Buffer[] = []
    const got: Buffer[] = []
    for (let step = 0; step < 30; step++) {
      const chunks = Array.from({ length: random.int(6) }, chunk)
      wanted.push(...chunks)
      if (random.int(2) === 0) sending.addAll(chunks)
      else for (const one of chunks) sending.add(one)
      const target = Buffer.alloc(random.int(sending.bytes + 1) + 4)
      sending.moveTo(target, 2, target.length - 4)
      assert.deepEqual([target[0], target[1], target.at(-2), target.at(-1)], [0, 0, 0, 0])
      got.push(target.subarray(2, -2))
    }
    const rest = Buffer.alloc(sending.bytes)
    sending.moveTo(rest, 0, rest.length)
    assert.ok(Buffer.concat([...got, rest]).equals(Buffer.concat(wanted)))
    assert.equal(sending.bytes, 0)
  }
})

test('a window counts up to its limit, and may be negative', () => {
  const sending = new Sending()
  assert.deepEqual([sending.widen(-5), sending.window, sending.widen(2 ** 31 + 4), sending.widen(1)], [true, -5, true, false])
})
