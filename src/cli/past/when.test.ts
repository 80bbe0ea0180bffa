import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandError } from '../exitCodes.ts'
import { parseWhen, wordsOf } from './when.ts'

const nowMs = new Date(2026, 0, 31, 14, 30, 10).getTime()
const secondMs = 1_000
const minuteMs = 60_000

const cases = [
  { text: '12345', want: { type: 'revision', revision: 12_345 } },
  { text: '-10m', want: { type: 'time', atMs: nowMs - 10 * minuteMs } },
  { text: '-1d2h', want: { type: 'time', atMs: nowMs - 26 * 60 * minuteMs } },
  { text: 'now', want: { type: 'newest' } },
  { text: '14:03', want: { type: 'time', atMs: nowMs - 27 * minuteMs - 10 * secondMs } },
  { text: '14:30:09', want: { type: 'time', atMs: nowMs - secondMs } },
  { text: '14:31', want: { type: 'time', atMs: nowMs + 50 * secondMs - 24 * 60 * minuteMs } },
  { text: '2026-01-31T14:03:00Z', want: { type: 'time', atMs: Date.parse('2026-01-31T14:03:00Z') } },
]
for (const { text, want } of cases) test(`X5 ${text} is read as a point in the past`, () => assert.deepEqual(parseWhen(text, nowMs), want))

test('X5 what is no point in the past is refused with the forms there are', () => {
  for (const text of ['0', '-0x', '24:00', '14:60', 'yesterday', '', '--', '-', '9999999999999999']) {
    assert.throws(
      () => parseWhen(text, nowMs),
      (error) => error instanceof CommandError && error.exit === 'usage' && error.message.includes('-10m'),
      text,
    )
  }
})

test('X5 a time in the future is refused, in the zone that it names', () => {
  const later = new Date(nowMs + minuteMs).toISOString()
  for (const text of [later, later.replace('Z', '-01:00')]) assert.throws(() => parseWhen(text, nowMs), /is in the future/)
  assert.deepEqual(parseWhen(later.replace('Z', '+01:00'), nowMs), { type: 'time', atMs: nowMs + minuteMs - 60 * minuteMs })
})

test('X5 a duration before now is a word of the command, an unknown flag is refused', () => {
  assert.deepEqual(wordsOf(['-10m', 'pods']), ['-10m', 'pods'])
  assert.throws(() => wordsOf(['-10m', '--all']), /unknown option '--all'/)
})
