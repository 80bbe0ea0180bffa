import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCronSchedule } from '#api/helpers/cronSchedule'
import { formatTime, parseTime } from '#base/time'
import { hasMissedMany, isTimeZone, mostRecentTime, nextTime } from './schedule.ts'

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
  // The hour that clocks leap over never comes, so its jobs wait a day; the hour that comes twice has its jobs twice.
  { schedule: '30 2 * * *', after: '2026-03-28T02:00:00Z', zone: 'Europe/Berlin', want: '2026-03-30T00:30:00Z' },
  { schedule: '30 2 * * *', after: '2026-10-24T12:00:00Z', zone: 'Europe/Berlin', want: '2026-10-25T00:30:00Z' },
  { schedule: '30 2 * * *', after: '2026-10-25T00:30:00Z', zone: 'Europe/Berlin', want: '2026-10-25T01:30:00Z' },
  { schedule: '30 2 * * *', after: '2026-10-25T01:30:00Z', zone: 'Europe/Berlin', want: '2026-10-26T01:30:00Z' },
  { schedule: '0 * * * *', after: '2026-03-29T00:30:00Z', zone: 'Europe/Berlin', want: '2026-03-29T01:00:00Z' },
  { schedule: '*/20 * * * *', after: '2026-01-01T00:10:00Z', zone: 'Asia/Kathmandu', want: '2026-01-01T00:15:00Z' },
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

test('CTL-08 the most recent time of a long row of intervals, without counting them', () => {
  const second = parse('@every 1s')
  assert.equal(formatTime(mostRecentTime(second, at('2000-01-01T00:00:00Z'), at('2026-01-01T00:00:00Z')) ?? 0), '2026-01-01T00:00:00Z')
  const week = parse('@every 168h')
  assert.equal(mostRecentTime(week, at('2026-01-01T00:00:00Z'), at('2026-01-07T23:59:59Z')), undefined)
  assert.equal(formatTime(mostRecentTime(week, at('2026-01-01T00:00:00Z'), at('2026-01-20T00:00:00Z')) ?? 0), '2026-01-15T00:00:00Z')
})

test('CTL-08 more than a hundred missed times are many', () => {
  const minutes = parse('* * * * *')
  const since = (text: string) => hasMissedMany(minutes, at(text), at('2026-01-01T12:00:00Z'))
  assert.deepEqual([since('2026-01-01T12:00:00Z'), since('2026-01-01T10:20:00Z'), since('2026-01-01T10:19:00Z')], [false, false, true])
  assert.equal(hasMissedMany(parse('0 0 31 2 *'), at('2020-01-01T00:00:00Z'), at('2026-01-01T00:00:00Z')), false)
})

test('CTL-08 time zones are those that the platform knows', () => {
  assert.deepEqual(['Europe/Berlin', 'Etc/UTC', 'Mars/Olympus'].map(isTimeZone), [true, true, false])
})
