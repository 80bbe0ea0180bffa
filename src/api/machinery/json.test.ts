import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JsonSyntaxError, parseJson } from './json.ts'

const refused: readonly (readonly [string, string])[] = [
  ['', 'unexpected end of JSON input'],
  ['{', 'unexpected end of JSON input'],
  ['{"a":1', 'unexpected end of JSON input'],
  ['"abc', 'unexpected end of JSON input'],
  ['{a:1}', "invalid character 'a' looking for beginning of object key string"],
  ['{"a" 1}', "invalid character '1' after object key"],
  ['{"a":1 "b"}', `invalid character '"' after object key:value pair`],
  ['[1 2]', "invalid character '2' after array element"],
  ['{"a":}', "invalid character '}' looking for beginning of value"],
  ['{} x', "invalid character 'x' after top-level value"],
  ['trve', "invalid character 'v' in literal true (expecting 'u')"],
  ['-x', "invalid character 'x' in numeric literal"],
  ['1.x', "invalid character 'x' after decimal point in numeric literal"],
  ['1ex', "invalid character 'x' in exponent of numeric literal"],
  ['"\\x"', "invalid character 'x' in string escape code"],
  ['"a\nb"', "invalid character '\\n' in string literal"],
  ["'", "invalid character '\\'' looking for beginning of value"],
  ['['.repeat(2_000) + ']'.repeat(2_000), 'exceeded max depth'],
]
for (const [input, message] of refused) {
  test(`malformed: ${input.slice(0, 20)}`, () => assert.throws(() => parseJson(input), new JsonSyntaxError(message)))
}

test('brackets inside strings are not depth', () => {
  assert.equal(parseJson(JSON.stringify('['.repeat(5_000))).value, '['.repeat(5_000))
})

test('API-13 duplicate fields are reported with their paths, the last one wins', () => {
  const text = '{"spec":{"a":[{"x":1,"x":2}],"b":"\\"}","b":2},"spec":{"c":1,"c.d":{"e":1,"e":1}}}'
  assert.deepEqual(parseJson(text, { duplicates: true }), {
    value: { spec: { c: 1, 'c.d': { e: 1 } } },
    duplicates: ['spec.a[0].x', 'spec.b', 'spec', 'spec.c.d.e'],
  })
  assert.deepEqual(parseJson(Buffer.from(text)).duplicates, [])
})
