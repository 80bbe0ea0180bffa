import assert from 'node:assert/strict'
import test from 'node:test'
import { ConnectionError, errorCode } from '../errors.ts'
import { HuffmanDecoder } from './huffman.ts'

/** [character, code, bits], from RFC 7541 appendix B. */
const codes: readonly (readonly [number, number, number])[] = [
  [0x00, 0x1ff8, 13],
  [0x09, 0xffffea, 24],
  [0x0a, 0x3ffffffc, 30],
  [0x16, 0x3ffffffe, 30],
  [0x20, 0x14, 6],
  [0x26, 0xf8, 8],
  [0x30, 0x0, 5],
  [0x39, 0x1f, 6],
  [0x3c, 0x7ffc, 15],
  [0x5c, 0x7fff0, 19],
  [0x5f, 0x22, 6],
  [0x7a, 0x7b, 7],
  [0x7b, 0x7ffe, 15],
  [0x7f, 0xffffffc, 28],
  [0x80, 0xfffe6, 20],
  [0xd6, 0x7ffffe2, 27],
  [0xff, 0x3ffffee, 26],
]

/** The codes in a row, the last byte filled with ones. */
function pack(row: readonly (readonly [number, number, number])[]): Buffer {
  const bits = row.map(([, code, length]) => code.toString(2).padStart(length, '0')).join('')
  const whole = bits.padEnd(Math.ceil(bits.length / 8) * 8, '1')
  return Buffer.from((whole.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
}

function decode(bytes: Buffer): string {
  return new HuffmanDecoder().decode(bytes, 0, bytes.length)
}

test('each code decodes to its character, alone and between others', () => {
  for (const one of codes) {
    const text = String.fromCharCode(one[0])
    assert.equal(decode(pack([one])), text)
    for (const other of codes) assert.equal(decode(pack([other, one, other, one])), (String.fromCharCode(other[0]) + text).repeat(2))
  }
})

test('the examples of RFC 7541, within other bytes', () => {
  const examples: readonly (readonly [string, string])[] = [
    ['', ''],
    ['f1e3c2e5f23a6ba0ab90f4ff', 'www.example.com'],
    ['a8eb10649cbf', 'no-cache'],
    ['25a849e95bb8e8b4bf', 'custom-value'],
    ['d07abe941054d444a8200595040b8166e082a62d1bff', 'Mon, 21 Oct 2013 20:13:21 GMT'],
    ['94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007', 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'],
  ]
  const decoder = new HuffmanDecoder()
  for (const [hex, text] of examples) {
    const bytes = Buffer.from(`ff${hex}ff`, 'hex')
    assert.equal(decoder.decode(bytes, 1, bytes.length - 1), text)
  }
})

test('a text longer than the decoder had room for', () => {
  assert.equal(decode(pack(Array.from({ length: 5_000 }, () => [0x30, 0, 5] as const))), '0'.repeat(5_000))
})

test('padding of eight bits or of zeros, and the end of string, are errors', () => {
  // "0" and three zeros; "0" and eleven ones; nothing but ones, up to the end of string; a code that is cut off.
  for (const hex of ['00', '07ff', 'ff', 'fffffffc', 'ffffffff', 'fffffa'])
    assert.throws(
      () => decode(Buffer.from(hex, 'hex')),
      (error) => error instanceof ConnectionError && error.code === errorCode.compressionError,
      hex,
    )
})
