import assert from 'node:assert/strict'
import test from 'node:test'
import { decodeStatus, encodeRequestHead } from './hpack.ts'

test('a request head is readable by the book (RFC 7541, C.2)', () => {
  const head = encodeRequestHead({ method: 'GET', path: '/sample/path', authority: 'a', accept: 'x' })
  assert.equal(head.toString('hex'), `8287010161040c${Buffer.from('/sample/path').toString('hex')}0f040178`)
})

test('other methods, bodies and long values', () => {
  const head = encodeRequestHead({ method: 'PATCH', path: `/${'p'.repeat(299)}`, authority: 'a', accept: 'x', contentType: 'j', contentLength: 12 })
  const path = `047fad01${Buffer.from(`/${'p'.repeat(299)}`).toString('hex')}`
  assert.equal(head.toString('hex'), `0205504154434887010161${path}0f0401780f10016a0f0d023132`)
})

const statuses: [string, string, number][] = [
  ['indexed', '88', 200],
  ['after an update of the table size', '2088', 200],
  ['after a long update of the table size', '3fe11f8d', 404],
  ['literal, plain', '0803323031', 201],
  ['literal, Huffman', '48821003', 201],
  ['literal, Huffman with a long code', '48826402', 302],
  ['another header first', '5803323031', 0],
]
for (const [name, hex, want] of statuses) test(`the status of an answer: ${name}`, () => assert.equal(decodeStatus(Buffer.from(hex, 'hex')), want))
