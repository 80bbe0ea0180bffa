import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32c } from './crc32c.ts'

const cases: readonly { readonly name: string; readonly bytes: Uint8Array; readonly want: number }[] = [
  { name: 'nothing', bytes: new Uint8Array(0), want: 0 },
  { name: 'the check value of the CRC catalogue', bytes: Buffer.from('123456789'), want: 0xe3069283 },
  { name: '32 zeros, from RFC 3720', bytes: new Uint8Array(32), want: 0x8a9136aa },
  { name: '32 times 0xff, from RFC 3720', bytes: new Uint8Array(32).fill(0xff), want: 0x62a8ab43 },
  { name: '0 to 31, from RFC 3720', bytes: Uint8Array.from({ length: 32 }, (_, index) => index), want: 0x46dd794e },
]
for (const { name, bytes, want } of cases) test(`ETC-11 CRC-32C of ${name}`, () => assert.equal(crc32c(bytes), want))

test('ETC-11 CRC-32C of pieces equals that of the whole', () => {
  const whole = Uint8Array.from({ length: 1000 }, (_, index) => (index * 7919) & 0xff)
  for (let at = 0; at <= whole.length; at += 37) assert.equal(crc32c(whole.subarray(at), crc32c(whole.subarray(0, at))), crc32c(whole))
})
