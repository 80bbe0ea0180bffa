import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { asLongInteger, hasLongInteger, stringifyExactly } from './exactIntegers.ts'
import { parseExactly, parseJson } from './json.ts'
import { jsonEqual } from './objects.ts'
import { parseYaml, toYaml } from './yaml.ts'

const numbers: readonly { readonly text: string; readonly want: number | bigint }[] = [
  { text: '9007199254740991', want: 9007199254740991 },
  { text: '9007199254740992', want: 9007199254740992n },
  { text: '-9007199254740993', want: -9007199254740993n },
  { text: '9223372036854775807', want: 9223372036854775807n },
  { text: '9223372036854775808', want: 2 ** 63 },
  { text: '-9223372036854775808', want: -9223372036854775808n },
  { text: '-9223372036854775809', want: -(2 ** 63) },
  { text: '9007199254740993.0', want: 2 ** 53 },
  { text: '9007199254740993e0', want: 2 ** 53 },
  { text: '0.12345678901234568', want: 0.12345678901234568 },
  { text: `1${'0'.repeat(300)}`, want: 1e300 },
]
for (const { text, want } of numbers) {
  const shown = text.slice(0, 24)
  test(`API-16 JSON reads ${shown} as upstream, wherever it stands`, () => {
    for (const [document, value] of [
      [text, want],
      [`{"a":{"b":[1,${text}]},"c":"x"}`, { a: { b: [1, want] }, c: 'x' }],
      [`{ "1234567890123456" : -1.5,\n "z": ${text} }`, { '1234567890123456': -1.5, z: want }],
    ] as const) {
      assert.deepEqual(parseJson(document), { value, duplicates: [] })
      assert.deepEqual(parseJson(Buffer.from(document), { duplicates: true }).value, value)
      assert.deepEqual(parseExactly(Buffer.from(document)), value)
    }
  })
}

test('API-13 of duplicate fields the last counts, whichever of them is a long integer', () => {
  const [a, b] = ['9007199254740993', '9007199254740992']
  for (const [text, value] of [
    [`{"x":${a},"x":${b}}`, { x: 9007199254740992n }],
    [`{"x":${b},"x":${a}}`, { x: 9007199254740993n }],
    [`{"x":${a},"x":1}`, { x: 1 }],
    [`{"x":${a},"x":9007199254740992.0}`, { x: 2 ** 53 }],
    [`{"x":{"y":${a}},"x":{"z":2}}`, { x: { z: 2 } }],
    [`{"x":[${a},1],"x":[2]}`, { x: [2] }],
    [`{"x":"${a}","x":${a}}`, { x: 9007199254740993n }],
    [`{"x":${a},"x":"${a}"}`, { x: a }],
  ] as const) {
    assert.deepEqual(parseJson(text).value, value, text)
  }
})

test('API-16 a member named __proto__ with a long integer is an own member', () => {
  const { value } = parseJson('{"__proto__":{"n":9007199254740993}}')
  assert.deepEqual(Object.entries(value as object), [['__proto__', { n: 9007199254740993n }]])
})

test('API-16 a run of 16 digits is found at each place of a document', () => {
  const [digits, short] = ['1234567890123456', '123456789012345']
  for (let before = 0; before < 40; before++) {
    for (const after of [0, 1, 20]) {
      const [pad, rest] = [' '.repeat(before), ' '.repeat(after)]
      assert.ok(hasLongInteger(`${pad}${digits}${rest}`), `${before}`)
      assert.ok(hasLongInteger(Buffer.from(`${pad}"${digits}",${digits}${rest}`)), `${before}`)
      assert.ok(!hasLongInteger(`${pad}${short}${rest}`))
      assert.ok(!hasLongInteger(Buffer.from(`${pad}"${digits}"${rest}`)))
    }
  }
})

test('API-16 bigints are printed as numbers, indented or not, and everything else as JSON.stringify prints it', () => {
  const rest = { text: 'a"\n', list: [1, undefined, null, []], none: undefined, empty: {}, deep: { yes: true, n: -1.5 } }
  for (const indent of [0, 2]) {
    const want = JSON.stringify({ long: 'L', in: ['L', rest] }, undefined, indent)
    assert.equal(stringifyExactly({ long: 9007199254740993n, in: [9007199254740993n, rest] }, indent), want.replaceAll('"L"', '9007199254740993'))
  }
})

test('API-16 YAML reads and prints int64 exactly, in every base, and takes a number beyond float64 for a text', () => {
  const text = 'a: 9007199254740993\nb: -0x20000000000001\nc: 0400000000000000001\nd: 9223372036854775808\ne: 1e400\nf: 9_007_199_254_740_993\n'
  const value = parseYaml(text)
  const exact = 9007199254740993n
  assert.deepEqual(value, { a: exact, b: -exact, c: exact, d: 2 ** 63, e: '1e400', f: exact })
  assert.deepEqual(parseYaml(toYaml(value)), value)
})

test('API-16 what is printed is read again, wherever long integers stand', () => {
  const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => asLongInteger(value) ?? Number(value))
  const text = fc.oneof(fc.string(), long.map(String))
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof({ maxDepth: 4 }, long, text, fc.boolean(), fc.constant(null), fc.array(tie('json')), fc.dictionary(text, tie('json'))),
  }))
  fc.assert(
    fc.property(json, fc.constantFrom(0, 2), fc.boolean(), (value, indent, duplicates) => {
      const printed = stringifyExactly(value, indent)
      assert.ok(jsonEqual(parseJson(printed, { duplicates }).value, value), printed)
      assert.ok(jsonEqual(parseExactly(Buffer.from(printed)), value), printed)
    }),
    { seed: 1, numRuns: 500 },
  )
})
