import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseYaml, parseYamlDocuments, toYaml, YamlSyntaxError } from './yaml.ts'

const scalars: readonly (readonly [string, unknown])[] = [
  ['yes', true],
  ['Off', false],
  ['n', false],
  ['~', null],
  ['0644', 420],
  ['0o17', 15],
  ['0x1F', 31],
  ['1_000', 1000],
  ['08', 8],
  ['-7', -7],
  ['1.5', 1.5],
  ['1e3', 1000],
  ['12:30:45', '12:30:45'],
  ['2001-01-01', '2001-01-01'],
  ['2001-01-01T00:00:00Z', '2001-01-01T00:00:00Z'],
  ['100m', '100m'],
  ['"yes"', 'yes'],
  ['1.2.3', '1.2.3'],
]
for (const [source, want] of scalars) test(`API-16 YAML scalar ${source}`, () => assert.deepEqual(parseYaml(`a: ${source}`), { a: want }))

test('keys become strings', () => assert.deepEqual(parseYaml('1: a\nyes: b\n'), { 1: 'a', true: 'b' }))

test('aliases are copies, merge keys merge', () => {
  const value = parseYaml('a: &x {b: [1]}\nc: *x\nd:\n  <<: *x\n  e: 2\n') as { a: object; c: object }
  assert.deepEqual(value, { a: { b: [1] }, c: { b: [1] }, d: { b: [1], e: 2 } })
  assert.notEqual(value.a, value.c)
})

test('an alias bomb is refused', () => {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
  for (let i = 1; i < 8; i++) lines.push(`a${i}: &a${i} [${Array.from({ length: 10 }, () => `*a${i - 1}`).join(', ')}]`)
  assert.throws(() => parseYaml(lines.join('\n')), /excessive aliasing/)
})

test('errors name the line', () =>
  assert.throws(
    () => parseYaml('a: b\nc: d: e\n'),
    (error) => error instanceof YamlSyntaxError && error.message.includes('yaml: line 2: '),
  ))

test('several documents, empty ones left out', () => assert.deepEqual(parseYamlDocuments('a: 1\n---\n---\nb: 2\n'), [{ a: 1 }, { b: 2 }]))

test('printing is as kubectl prints', () => {
  const value = {
    b: [{ name: 'x', list: ['1', 'true', 'a: b', ''] }],
    a: 'text',
    empty: {},
    none: [],
    multi: 'one\ntwo\n',
    n: 5,
    t: true,
    time: '2001-01-01T00:00:00Z',
  }
  const want = [
    'a: text',
    'b:',
    '- list:',
    '  - "1"',
    '  - "true"',
    "  - 'a: b'",
    '  - ""',
    '  name: x',
    'empty: {}',
    'multi: |',
    '  one',
    '  two',
    '"n": 5',
    'none: []',
    't: true',
    'time: "2001-01-01T00:00:00Z"',
    '',
  ].join('\n')
  assert.equal(toYaml(value), want)
  assert.deepEqual(parseYaml(want), value)
})

test('JSON is YAML, and flow mappings are no JSON', () => {
  assert.deepEqual(parseYaml('{"a": "yes", "b": [1, null]}'), { a: 'yes', b: [1, null] })
  assert.deepEqual(parseYaml('{a: yes, b: [1, ~]}'), { a: true, b: [1, null] })
  assert.throws(() => parseYaml('{a: '), YamlSyntaxError)
})
