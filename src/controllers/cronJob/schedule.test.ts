import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCronSchedule } from '#api/helpers/cronSchedule'
import { seededRandom } from '#base/random'
import { formatTime, parseTime } from '#base/time'
import { hasMissedMany, mostRecentTime, nextTime } from './schedule.ts'
import { TimeZones, utc } from './timeZones.ts'

const parse = (text: string) => {
  const parsed = parseCronSchedule(text)
  return 'fault' in parsed ? assert.fail(parsed.fault) : parsed
}
const zones = new TimeZones()
const zoneOf = (name = 'UTC') => zones.of(name) ?? assert.fail(name)
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
  // The hour that clocks skip does not exist, so its jobs wait a day; the repeated hour runs its jobs twice.
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
    assert.equal(formatTime(nextTime(parsed, at(after), zoneOf(zone)) ?? 0), want)
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

test('CTL-08 a name that objects inherit is no month', () => {
  assert.deepEqual(parseCronSchedule('* * * constructor *'), {
    fault: 'failed to parse int from constructor: strconv.Atoi: parsing "constructor": invalid syntax',
  })
})

test('CTL-08 time zones are those that the platform knows', () => {
  assert.deepEqual(
    ['Europe/Berlin', 'Etc/UTC', 'Mars/Olympus'].map((name) => zones.of(name) !== undefined),
    [true, true, false],
  )
})

test('CTL-08 a schedule that never fires is recognized in less than a millisecond, in any zone', () => {
  const never = [parse('0 0 31 2 *'), parse('0 0 30 2 *'), parse('59 23 31 4,6,9,11 *'), parse(', * * * *'), parse('* , * * *'), parse('* * * , *')]
  const now = at('2026-01-01T00:00:00Z')
  const names = ['UTC', 'Europe/Berlin', 'America/Sao_Paulo', 'Australia/Lord_Howe']
  for (const name of names)
    assert.deepEqual(
      never.map((schedule) => nextTime(schedule, now, zoneOf(name))),
      never.map(() => undefined),
    ) // warm
  const startMs = performance.now()
  for (let i = 0; i < 100; i++) for (const name of names) for (const schedule of never) nextTime(schedule, now, zoneOf(name))
  assert.ok((performance.now() - startMs) / (100 * names.length * never.length) < 1)
})

test('CTL-08 the most recent of years of minutes is found without walking through them', () => {
  const berlin = zoneOf('Europe/Berlin')
  const now = at('2026-06-15T12:00:30Z')
  const startMs = performance.now()
  assert.equal(mostRecentTime(parse('* * * * *'), at('1990-01-01T00:00:00Z'), now, berlin), at('2026-06-15T12:00:00Z'))
  // The estimate from the first two, a year apart, says few; between them lie hundreds of thousands.
  assert.equal(mostRecentTime(parse('* * * 1-3 *'), at('1990-01-01T00:00:00Z'), now, berlin), at('2026-03-31T21:59:00Z'))
  assert.ok(performance.now() - startMs < 1000)
})

test('CTL-08 a time that lies more than five years ahead is none', () => {
  assert.equal(nextTime(parse('0 0 29 2 *'), at('2097-01-01T00:00:00Z')), undefined)
  assert.equal(formatTime(nextTime(parse('0 0 29 2 *'), at('2099-01-01T00:00:00Z')) ?? 0), '2104-02-29T00:00:00Z')
})

test('CTL-08 a clock that was set back waits for the time of the CronJob', () => {
  const future = at('2036-01-01T00:00:00Z')
  assert.equal(mostRecentTime(parse('* * * * *'), future, at('2026-01-01T00:00:00Z')), undefined)
  assert.equal(hasMissedMany(parse('* * * * *'), future, at('2026-01-01T00:00:00Z')), false)
})

// Upstream's search takes Thursday 23:00 for the beginning of a Friday without a midnight, and continues with Saturday.
test('CTL-08 east of Greenwich a day whose midnight is skipped is none for a schedule by days, as upstream', () => {
  const next = nextTime(parse('0 5 * * 5'), at('2026-04-20T10:00:00Z'), zoneOf('Africa/Cairo'))
  assert.equal(formatTime(next ?? 0), '2026-05-01T02:00:00Z')
  const daily = nextTime(parse('0 5 * * *'), at('2026-04-23T20:30:00Z'), zoneOf('Africa/Cairo'))
  assert.equal(formatTime(daily ?? 0), '2026-04-24T02:00:00Z')
})

// Upstream's search looks at the date again when the hour is 0, which it never is on that night.
test('CTL-08 west of Greenwich a night without a midnight belongs to the day before, as upstream', () => {
  const next = nextTime(parse('0 2 3 11 *'), at('2018-11-03T19:00:00Z'), zoneOf('America/Sao_Paulo'))
  assert.equal(formatTime(next ?? 0), '2018-11-04T04:00:00Z')
})

const random = seededRandom(17)
const pick = <T>(list: readonly T[]): T => list[random.int(list.length)] as T
/** The reference: asks the platform what clocks show, minute by minute. */
function walk(schedule: ReturnType<typeof parse>, afterMs: number, minutes: number, name: string): number | undefined {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: name,
    hourCycle: 'h23',
    weekday: 'short',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  })
  for (let i = 1; i <= minutes; i++) {
    const ms = (Math.floor(afterMs / 60_000) + i) * 60_000
    const parts = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, value]))
    const day = schedule.days.has(Number(parts.day))
    const weekday = schedule.weekdays.has('Sun Mon Tue Wed Thu Fri Sat'.split(' ').indexOf(parts.weekday ?? ''))
    const dayFits = schedule.anyDay || schedule.anyWeekday ? day && weekday : day || weekday
    if (dayFits && schedule.months.has(Number(parts.month)) && schedule.hours.has(Number(parts.hour)) && schedule.minutes.has(Number(parts.minute))) return ms
  }
  return undefined
}

/** Each with the begin of a span in which its clocks change. */
const changes: readonly (readonly [zone: string, from: string])[] = [
  ['UTC', '2026-02-26T00:00:00Z'],
  ['Europe/Berlin', '2026-03-28T00:00:00Z'],
  ['Europe/Berlin', '2026-10-24T00:00:00Z'],
  ['America/New_York', '2026-03-07T00:00:00Z'],
  ['America/New_York', '2026-10-31T00:00:00Z'],
  ['Asia/Kathmandu', '2026-12-30T00:00:00Z'],
  ['Pacific/Apia', '2011-12-29T00:00:00Z'],
]
test('CTL-08 the next time is the one that a walk by minutes finds, in zones whose clocks change', () => {
  let found = 0
  for (let i = 0; i < 600; i++) {
    const [name, from] = pick(changes)
    const fields = [
      pick(['*', '0', '30', '*/20', '59', '1,31']),
      pick(['*', '0', '1', '2', '3', '23', '*/5', '1-3']),
      pick(['*', '*', '1', '29', '31', '*/2']),
      pick(['*', '*', '3', '10-12']),
      pick(['*', '*', '0', '1-5']),
    ]
    const schedule = parse(fields.join(' '))
    const afterMs = at(from) + random.int(2 * 24 * 60) * 60_000 + random.int(60_000)
    const minutes = 2000
    const want = walk(schedule, afterMs, minutes, name)
    const got = nextTime(schedule, afterMs, zoneOf(name))
    const within = got !== undefined && got <= (Math.floor(afterMs / 60_000) + minutes) * 60_000 ? got : undefined
    assert.equal(within && formatTime(within), want && formatTime(want), `${fields.join(' ')} after ${formatTime(afterMs)} in ${name}`)
    if (want === undefined) continue
    found++
    const nowMs = want + random.int(3) * 60_000 * 60
    const recent = mostRecentTime(schedule, afterMs, nowMs, zoneOf(name))
    assert.ok(recent !== undefined && recent >= want && recent <= nowMs)
    assert.ok((nextTime(schedule, recent, zoneOf(name)) ?? Number.POSITIVE_INFINITY) > nowMs)
  }
  assert.ok(found > 200)
})

test('CTL-08 the reference walk and the search agree on UTC without a zone', () => {
  const schedule = parse('7 */3 * * *')
  assert.equal(nextTime(schedule, at('2026-01-01T00:07:00Z'), utc), walk(schedule, at('2026-01-01T00:07:00Z'), 400, 'UTC'))
})
