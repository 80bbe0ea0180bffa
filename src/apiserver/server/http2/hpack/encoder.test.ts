import assert from 'node:assert/strict'
import test from 'node:test'
import { seededRandom } from '#base/random'
import { HpackDecoder } from './decoder.ts'
import { HpackEncoder } from './encoder.ts'
import { staticTable } from './staticTable.ts'

function decode(block: string): (readonly [string, string])[] {
  const fields: (readonly [string, string])[] = []
  const bytes = Buffer.from(block, 'latin1')
  new HpackDecoder().decode(bytes, 0, bytes.length, {
    field: (name, value, isSound) => {
      assert.ok(isSound)
      fields.push([name, value])
    },
  })
  return fields
}

test('every status', () => {
  const encoder = new HpackEncoder()
  for (const status of [200, 201, 204, 304, 404, 409, 422, 500, 504]) assert.deepEqual(decode(encoder.status(status)), [[':status', String(status)]])
  assert.equal(encoder.status(200), '\x88')
})

test('the decoder returns random headers unchanged', () => {
  const random = seededRandom(7)
  const encoder = new HpackEncoder()
  const names = [
    ...staticTable.map(({ name }) => name).filter((name) => /^[a-z]/.test(name) && name !== 'transfer-encoding'),
    'audit-id',
    'x-a',
    'x'.repeat(300),
  ]
  const characters = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).filter((one) => /[\x21-\x7e\x80-\xff]/.test(one))
  for (let round = 0; round < 2_000; round++) {
    const length = [0, 1, 126, 127, 128, 300, 16_600][random.int(round % 100 === 0 ? 7 : 6)] ?? 0
    const name = names[random.int(names.length)] ?? ''
    const value = Array.from({ length }, () => characters[random.int(characters.length)]).join('')
    for (let again = 0; again < 2; again++) assert.deepEqual(decode(encoder.field(name, value)), [[name, value]])
  }
})

test('the encoder throws for an invalid name or value', () => {
  const encoder = new HpackEncoder()
  for (const name of ['', 'A', ':status', 'a b', 'connection', 'transfer-encoding', 'upgrade']) assert.throws(() => encoder.field(name, 'x'), TypeError, name)
  // The last one would be a line break, if it were cut to a byte.
  for (const value of ['a\r\nb: c', '\0', '\x7f', '\u010a']) assert.throws(() => encoder.field('a', value), TypeError, JSON.stringify(value))
})
