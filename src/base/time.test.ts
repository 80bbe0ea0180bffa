import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatMicroTime, formatTime, parseTime } from './time.ts'

test('formatTime agrees with the platform over 800 years', () => {
  for (let ms = Date.UTC(1800, 0, 1); ms < Date.UTC(2600, 0, 1); ms += 86_400_000 * 13 + 12_345_000) {
    assert.equal(formatTime(ms), `${new Date(ms).toISOString().slice(0, 19)}Z`)
    assert.equal(parseTime(formatTime(ms)), ms)
  }
})

test('formatMicroTime keeps six digits', () => {
  assert.equal(formatMicroTime(Date.UTC(2026, 0, 2, 3, 4, 5, 678)), '2026-01-02T03:04:05.678000Z')
})

const refused = ['', '2026-01-01', '2026-13-01T00:00:00Z', '2026-02-29T00:00:00Z', '2026-01-01T24:00:00Z', '2026-01-01T00:00:00', 'now']
for (const text of refused) test(`parseTime refuses ${JSON.stringify(text)}`, () => assert.equal(parseTime(text), undefined))

test('parseTime understands zones and fractions', () => {
  assert.equal(parseTime('2026-01-01T02:00:00.5+02:00'), Date.UTC(2026, 0, 1, 0, 0, 0, 500))
})
