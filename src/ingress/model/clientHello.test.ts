import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '#base/random'
import { maxClientHelloBytes, readClientHello } from './clientHello.ts'

const number = (value: number, size: number) => Array.from({ length: size }, (_, i) => (value >> (8 * (size - 1 - i))) & 255)
const sized = (size: number, content: readonly number[]) => [...number(content.length, size), ...content]
const text = (value: string) => [...Buffer.from(value, 'latin1')]
const serverName = (...names: readonly string[]) => [
  0,
  0,
  ...sized(
    2,
    sized(
      2,
      names.flatMap((name) => [0, ...sized(2, text(name))]),
    ),
  ),
]
const other = (length: number) => [0, 43, ...sized(2, Array(length).fill(7))]

/** @param size of each record */
function records(message: readonly number[], size = 16_384): Buffer {
  const parts: number[] = []
  for (let at = 0; at < message.length; at += size) parts.push(22, 3, 1, ...sized(2, message.slice(at, at + size)))
  return Buffer.from(parts)
}

function helloOf(extensions: readonly number[] | undefined): number[] {
  const head = [3, 3, ...Array(32).fill(9), ...sized(1, Array(32).fill(1)), ...sized(2, [19, 1]), ...sized(1, [0])]
  return [1, ...sized(3, [...head, ...(extensions ? sized(2, extensions) : [])])]
}

test('ING-05 the server name of a ClientHello is read in lower case, whatever comes before and behind it', () => {
  const cases: [extensions: readonly number[] | undefined, wanted: string][] = [
    [serverName('a.example.com'), 'a.example.com'],
    [[...other(3000), ...serverName('A.Example.COM.'), ...other(5)], 'a.example.com'],
    [other(5), ''],
    [undefined, ''],
    [serverName('192.0.2.1'), ''],
    [serverName('a:1'), ''],
    [serverName('a b'), ''],
    [serverName('*.test'), ''],
    [serverName('x'.repeat(3000)), ''],
  ]
  for (const [extensions, wanted] of cases) assert.deepEqual(readClientHello(records(helloOf(extensions))), { serverName: wanted })
  const followed = Buffer.concat([records(helloOf(serverName('a.test'))), Buffer.from('anything')])
  assert.deepEqual(readClientHello(followed), { serverName: 'a.test' })
})

for (const size of [1, 3, 100]) {
  test(`ING-05 a ClientHello in records of ${size} bytes is read once it is whole, and each earlier part says how many bytes it needs`, () => {
    const bytes = records(helloOf(serverName('a.example.com')), size)
    let needs = 1
    for (let length = 0; length < bytes.length; length++) {
      const read = readClientHello(bytes.subarray(0, length))
      assert.ok(read !== 'invalid' && 'needs' in read && read.needs > length && read.needs <= bytes.length, `${length}: ${JSON.stringify(read)}`)
      if (length === needs) needs = read.needs
    }
    assert.equal(needs, bytes.length)
    assert.deepEqual(readClientHello(bytes), { serverName: 'a.example.com' })
  })
}

test('ING-05 what is no ClientHello, or is larger than the limit, is invalid', () => {
  const hello = helloOf(serverName('a.test'))
  const cases: [what: string, bytes: Buffer][] = [
    ['a request in clear text', Buffer.from('GET / HTTP/1.1\r\n')],
    ['one byte of it', Buffer.from('G')],
    ['a record of application data', Buffer.from([23, 3, 3, 0, 1, 0])],
    ['SSL 2', Buffer.from([22, 2, 0, 0, 1, 0])],
    ['an empty record', Buffer.from([22, 3, 1, 0, 0])],
    ['a record larger than TLS allows', Buffer.from([22, 3, 1, 64, 1])],
    ['another message', records([2, ...hello.slice(1)])],
    ['a message larger than the limit', records([1, 0, 64, 0])],
    ['a message whose records are larger than the limit', records(helloOf(other(3500)), 1).subarray(0, maxClientHelloBytes)],
    ['two server names', records(helloOf(serverName('a.test', 'b.test')))],
    ['two extensions with a server name', records(helloOf([...serverName('a.test'), ...serverName('b.test')]))],
    ['an extension without a server name', records(helloOf([0, 0, 0, 0]))],
    ['an extension that is longer than the message', records(helloOf([0, 43, 255, 255]))],
    ['half an extension', records(helloOf([0]))],
  ]
  for (const [what, bytes] of cases) assert.equal(readClientHello(bytes), 'invalid', what)
})

test('ING-05 100,000 mutated ClientHellos are read without an error, and ask for no more bytes than the limit', () => {
  const random = seededRandom(11)
  const whole = records(helloOf([...other(9), ...serverName('a.example.com'), ...other(9)]), 60)
  const seen = { invalid: 0, read: 0, incomplete: 0 }
  for (let i = 0; i < 100_000; i++) {
    const bytes = Buffer.from(whole.subarray(0, random.int(4) === 0 ? random.int(whole.length) : whole.length))
    for (let changes = random.int(3); changes > 0 && bytes.length > 0; changes--) bytes[random.int(bytes.length)] = random.int(256)
    const read = readClientHello(bytes)
    if (read === 'invalid') seen.invalid++
    else if ('needs' in read) {
      assert.ok(read.needs > bytes.length && read.needs <= maxClientHelloBytes)
      seen.incomplete++
    } else seen.read++
  }
  for (const [what, count] of Object.entries(seen)) assert.ok(count > 1000, `${what}: ${count}`)
})
