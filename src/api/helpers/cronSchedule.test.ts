import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCronSchedule } from './cronSchedule.ts'

const faults: [string, string][] = [
  ['', 'empty spec string'],
  ['* * * *', 'expected exactly 5 fields, found 4: [* * * *]'],
  ['60 * * * *', 'end of range (60) above maximum (59): 60'],
  ['* * 0 * *', 'beginning of range (0) below minimum (1): 0'],
  ['5-1 * * * *', 'beginning of range (5) beyond end of range (1): 5-1'],
  ['*/0 * * * *', 'step of range should be a positive number: */0'],
  ['1-2-3 * * * *', 'too many hyphens: 1-2-3'],
  ['1/2/3 * * * *', 'too many slashes: 1/2/3'],
  ['x * * * *', 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'],
  ['@never', 'unrecognized descriptor: @never'],
  ['@every 9999999999999h', 'failed to parse duration @every 9999999999999h: time: invalid duration "9999999999999h"'],
  ['@every soon', 'failed to parse duration @every soon: time: invalid duration "soon"'],
]
for (const [text, fault] of faults) test(`CTL-08 cron ${JSON.stringify(text)}: ${fault}`, () => assert.deepEqual(parseCronSchedule(text), { fault }))

for (const [text, everyMs] of [
  ['@every 1ns', 1_000],
  ['@every 1h1.5s', 3_601_000],
  ['@every -5m', 1_000],
] as const)
  test(`CTL-08 cron ${text} is every ${everyMs} ms: whole seconds, and at least one`, () => {
    const schedule = parseCronSchedule(text)
    assert.equal('fault' in schedule ? schedule.fault : schedule.everyMs, everyMs)
  })

test('CTL-08 cron: names, lists, ranges and steps', () => {
  const schedule = parseCronSchedule('5/20,7 9-11 * jan MON-fri')
  assert.ok(!('fault' in schedule))
  const { minutes, hours, months, weekdays, anyDay, anyWeekday } = schedule
  assert.deepEqual([[...minutes], [...hours], [...months], [...weekdays]], [[5, 25, 45, 7], [9, 10, 11], [1], [1, 2, 3, 4, 5]])
  assert.deepEqual([anyDay, anyWeekday], [true, false])
})
