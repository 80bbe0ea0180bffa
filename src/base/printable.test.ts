import assert from 'node:assert/strict'
import { test } from 'node:test'
import { printable, printableData, printableError, printableLines } from './printable.ts'

const cases = [
  { name: 'plain text of any script', text: 'nginx größe 名前 😀', want: 'nginx größe 名前 😀' },
  { name: 'an escape sequence', text: 'a\u001b[2J', want: 'a\\u001b[2J' },
  { name: 'a forged line', text: 'a\r\nyes: all', want: 'a\\u000d\\u000ayes: all' },
  { name: 'NUL, DEL and C1', text: '\0\u007f\u0080\u009b', want: '\\u0000\\u007f\\u0080\\u009b' },
  { name: 'overrides and isolates of direction', text: '\u202a\u202e\u2066\u2069\u200f', want: '\\u202a\\u202e\\u2066\\u2069\\u200f' },
  { name: 'separators of lines and paragraphs', text: '\u2028\u2029', want: '\\u2028\\u2029' },
]
for (const { name, text, want } of cases) test(`text in a line is escaped, ${name}`, () => assert.equal(printable(text), want))

test('lines keep their own line feeds and tabs, nothing else that controls a terminal', () =>
  assert.equal(printableLines('a\tb\nc\rd\u001b'), 'a\tb\nc\\u000dd\\u001b'))

test('JSON with escaped characters is the same JSON', () => {
  const data = { 'a\u009b': ['\u202e\r\n', { b: '\u2028\u007f' }] }
  assert.deepEqual(JSON.parse(printableLines(JSON.stringify(data, null, 2))), data)
})

test('strings are escaped at every depth of data', () =>
  assert.deepEqual(printableData({ 'k\n': ['a\r', { b: '\u001b', c: 1, d: null }] }), { 'k\\u000a': ['a\\u000d', { b: '\\u001b', c: 1, d: null }] }))

test('the message of an error is one line, and its stack follows', () => {
  const lines = printableError(new Error('bad\n    at forged (x)\nyes')).split('\n')
  assert.equal(lines[0], 'bad\\u000a    at forged (x)\\u000ayes')
  assert.ok(lines.length > 1 && lines.slice(1).every((line) => line.startsWith('    at ')))
  assert.equal(printableError('a\nb'), 'a\\u000ab')
})
