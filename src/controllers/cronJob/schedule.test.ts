import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCronSchedule } from '#api/helpers/cronSchedule'
import { formatTime, parseTime } from '#base/time'
import { mostRecentTime, nextTime } from './schedule.ts'

const parse = (text: string) => {
  const parsed = parseCronSchedule(text)
  return 'fault' in parsed ? assert.fail(parsed.fault) : parsed
}
const at = (text: string) => parseTime(text) ?? assert.fail(text)
const cases: { schedule: string; after: string; zone?: string; want: string }[] = [
  { schedule: '* * * * *', after: '2026-01-01T00:00:30Z', want: '2026-01-01T00:01:00Z' },
  { schedule: '*/15 * * * *', after: '2026-01-01T00:45:00Z', want: '2026-01-01T01:00:00Z' },
  { schedule: '5/20 9-17 * * mon-fri', after: '2026-01-02T17:45:00Z', want: '2026-01-05T09:05:00Z' },
  { schedule: '0 0 29 2 *', after: '2026-01-01T00:00:00Z', want: '2028-02-29T00:00:00Z' },
  { schedule: '0 0 13 * 5', after: '2026-01-01T00:00:00Z', want: '2026-01-02T00:00:00Z' },
  { schedule: '@monthly', after: '2026-01-01T00:00:00Z', want: '2026-02-01T00:00:00Z' },
  { schedule: '@every 1h30m', after: '2026-01-01T00:00:00Z', want: '2026-01-01T01:30:00Z' },
  { schedule: '0 9 * * *', after: '2026-07-01T00:00:00Z', zone: 'Europe/Berlin', want: '2026-07-01T07:00:00Z' },
  { schedule: '0 9 * * *', after: '2026-01-01T00:00:00Z', zone: 'Europe/Berlin', want: '2026-01-01T08:00:00Z' },
]
for (const { schedule, after, zone, want } of cases) {
  test(`CTL-08 ${schedule} after ${after} ${zone ?? ''}`, () => {
    const parsed = parse(schedule)
    assert.equal(formatTime(nextTime(parsed, at(after), zone) ?? 0), want)
  })
}

test('CTL-08 the most recent of many missed times, without counting them all', () => {
  const schedule = parse('0 3 * * *')
  assert.equal(formatTime(mostRecentTime(schedule, at('2020-01-01T00:00:00Z'), at('2026-01-01T02:00:00Z')) ?? 0), '2025-12-31T03:00:00Z')
  assert.equal(mostRecentTime(schedule, at('2026-01-01T03:00:00Z'), at('2026-01-01T10:00:00Z')), undefined)
})
