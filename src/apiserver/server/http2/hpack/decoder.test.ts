import assert from 'node:assert/strict'
import test from 'node:test'
import { ConnectionError, errorCode } from '../errors.ts'
import { HpackDecoder } from './decoder.ts'

function decode(decoder: HpackDecoder, hex: string): string[] {
  const fields: string[] = []
  const bytes = Buffer.from(`aa${hex.replaceAll(' ', '')}aa`, 'hex')
  decoder.decode(bytes, 1, bytes.length - 1, { field: (name, value, isSound) => fields.push(`${name}: ${value}${isSound ? '' : ' (unsound)'}`) })
  return fields
}

const first = [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com']
const third = [':method: GET', ':scheme: https', ':path: /index.html', ':authority: www.example.com', 'custom-key: custom-value']
const dates = ['date: Mon, 21 Oct 2013 20:13:21 GMT', 'date: Mon, 21 Oct 2013 20:13:22 GMT']
const cookie = 'set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'
const location = 'location: https://www.example.com'
const answers = [
  [':status: 302', 'cache-control: private', dates[0], location],
  [':status: 307', 'cache-control: private', dates[0], location],
  [':status: 200', 'cache-control: private', dates[1], location, 'content-encoding: gzip', cookie],
]
/** A table of 256 bytes, as the examples of answers have it. */
const small = '3fe101'

/** Blocks of one connection, from RFC 7541 appendix C. */
const connections = [
  { name: 'C.2.1', blocks: ['400a637573746f6d2d6b65790d637573746f6d2d686561646572'], want: [['custom-key: custom-header']] },
  { name: 'C.2.2', blocks: ['040c2f73616d706c652f70617468'], want: [[':path: /sample/path']] },
  { name: 'C.2.3', blocks: ['100870617373776f726406736563726574'], want: [['password: secret']] },
  { name: 'C.2.4', blocks: ['82'], want: [[':method: GET']] },
  {
    name: 'C.3',
    blocks: ['828684410f7777772e6578616d706c652e636f6d', '828684be58086e6f2d6361636865', '828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565'],
    want: [first, [...first, 'cache-control: no-cache'], third],
  },
  {
    name: 'C.4',
    blocks: ['828684418cf1e3c2e5f23a6ba0ab90f4ff', '828684be5886a8eb10649cbf', '828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf'],
    want: [first, [...first, 'cache-control: no-cache'], third],
  },
  {
    name: 'C.5',
    blocks: [
      `${small}4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d`,
      '4803333037c1c0bf',
      '88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31',
    ],
    want: answers,
  },
  {
    name: 'C.6',
    blocks: [
      `${small}488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3`,
      '4883640effc1c0bf',
      '88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007',
    ],
    want: answers,
  },
]
for (const { name, blocks, want } of connections)
  test(`HPACK as in RFC 7541 ${name}`, () => {
    const decoder = new HpackDecoder()
    assert.deepEqual(
      blocks.map((block) => decode(decoder, block)),
      want,
    )
  })

test('invalid fields are marked, also when they are read from the dynamic table', () => {
  const decoder = new HpackDecoder()
  assert.deepEqual(decode(decoder, '4001410162'), ['A: b (unsound)'])
  assert.deepEqual(decode(decoder, 'be'), ['A: b (unsound)'])
  // Its name with another value; a name that is sound with a line break as value; then that name with a good one.
  assert.deepEqual(decode(decoder, '0f2f0163'), ['A: c (unsound)'])
  assert.deepEqual(decode(decoder, '400161010a'), ['a: \n (unsound)'])
  assert.deepEqual(decode(decoder, '0f2f0163'), ['a: c'])
  const values = ['0120', '026120', '022061', '0109', '017f', '0100'].map((value) => decode(decoder, `000161${value}`).join())
  assert.ok(
    values.every((value) => value.endsWith('(unsound)')),
    values.join(),
  )
  assert.deepEqual(
    ['00', '0180', '03610962'].map((value) => decode(decoder, `000161${value}`).join()),
    ['a: ', 'a: \x80', 'a: a\tb'],
  )
})

test('a field larger than the table empties it', () => {
  const decoder = new HpackDecoder()
  decode(decoder, '4001610162')
  assert.deepEqual(decode(decoder, 'be'), ['a: b'])
  // 4,064 characters, a name of one and 32 for the field: one byte too many.
  decode(decoder, `4001617fe11e${'62'.repeat(4_064)}`)
  assert.throws(() => decode(decoder, 'be'), ConnectionError)
})

const wrong = [
  ['the index 0', '80'],
  ['an index without an entry', 'be'],
  ['the name of an index without an entry', '7f0001 61'],
  ['an integer without end', 'ffffffffffffff01'],
  ['an integer that is cut off', 'ff'],
  ['a name that is cut off', '0003 6161'],
  ['a value that is missing', '000161'],
  ['a table larger than granted', '3fe21f'],
  ['a table size after a field', '8220'],
  ['a Huffman text that means nothing', '00016181 00'],
] as const
for (const [name, block] of wrong)
  test(`a block with ${name} is an error of the connection`, () =>
    assert.throws(
      () => decode(new HpackDecoder(), block),
      (error) => error instanceof ConnectionError && error.code === errorCode.compressionError,
    ))
