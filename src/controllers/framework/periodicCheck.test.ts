import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Logger, noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import type { ControllerContext } from './controller.ts'
import { createPeriodicCheck } from './periodicCheck.ts'

const never = Number.POSITIVE_INFINITY

/** Checks every 5 s; `answer` gives the result of each check, by its second. */
function setUp(answer: (second: number) => number) {
  const clock = new VirtualClock()
  const checks: number[] = []
  const warnings: string[] = []
  const log: Logger = { ...noLog, warn: (message) => void warnings.push(message) }
  const stop = new AbortController()
  const task = createPeriodicCheck({ clock, log } as unknown as ControllerContext, {
    name: 'test',
    periodMs: 5_000,
    check: async () => {
      checks.push(clock.monotonicMs() / 1000)
      return answer(clock.monotonicMs() / 1000)
    },
  })
  const running = task.run(stop.signal)
  return { clock, checks, warnings, task, stop, running }
}

const cases: { name: string; answer: (second: number) => number; changes: readonly number[]; checks: readonly number[] }[] = [
  { name: 'time alone changes nothing: the first check only', answer: () => never, changes: [], checks: [0] },
  { name: 'something may have happened by the next turn', answer: () => 0, changes: [], checks: [0, 5, 10, 15, 20, 25, 30] },
  { name: 'a due time between two turns waits for the second', answer: (second) => (second === 0 ? 12_000 : never), changes: [], checks: [0, 15] },
  { name: 'a due time at a turn is that turn', answer: (second) => (second === 0 ? 10_000 : never), changes: [], checks: [0, 10] },
  { name: 'a change is checked at the next turn, once', answer: () => never, changes: [11, 12, 13], checks: [0, 15] },
  {
    name: 'a change runs the next turn before a later due time, and turns keep their period',
    answer: (second) => 24_000 - second * 1000,
    changes: [7],
    checks: [0, 10, 25, 30],
  },
  { name: 'a change does not put off what is due before', answer: (second) => (second === 0 ? 8_000 : never), changes: [1, 9], checks: [0, 5, 10] },
]

for (const { name, answer, changes, checks: wanted } of cases)
  test(`a periodic look: ${name}`, async () => {
    const { clock, checks, task, stop, running } = setUp(answer)
    for (let second = 0; second < 30; second++) {
      if (changes.includes(second)) task.changed()
      await clock.advance(1_000)
    }
    assert.deepEqual(checks, wanted)
    stop.abort()
    await running
    assert.equal(clock.nextTimerMs(), undefined)
  })

test('a failed check is logged and repeated at the next turn', async () => {
  const { clock, checks, warnings, stop, running } = setUp((second) => {
    if (second === 0) throw new Error('a fault on purpose')
    return never
  })
  await clock.advance(30_000)
  assert.deepEqual([checks, warnings], [[0, 5], ['A periodic task failed']])
  stop.abort()
  await running
})

test('a change during a look is looked at on the next turn', async () => {
  const during = { change: () => {} }
  const { clock, checks, task, stop, running } = setUp((second) => {
    if (second === 10) during.change()
    return second === 0 ? 10_000 : never
  })
  during.change = task.changed
  await clock.advance(30_000)
  assert.deepEqual(checks, [0, 10, 15])
  stop.abort()
  await running
})
