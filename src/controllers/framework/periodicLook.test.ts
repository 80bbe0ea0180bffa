import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Logger, noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import type { ControllerContext } from './controller.ts'
import { createPeriodicLook } from './periodicLook.ts'

const never = Number.POSITIVE_INFINITY

/** Looks every 5 s; `answer` says what each look gives, by the second at which it is taken. */
function setUp(answer: (second: number) => number) {
  const clock = new VirtualClock()
  const looks: number[] = []
  const warnings: string[] = []
  const log: Logger = { ...noLog, warn: (message) => void warnings.push(message) }
  const stop = new AbortController()
  const task = createPeriodicLook({ clock, log } as unknown as ControllerContext, {
    name: 'test',
    periodMs: 5_000,
    look: async () => {
      looks.push(clock.monotonicMs() / 1000)
      return answer(clock.monotonicMs() / 1000)
    },
  })
  const running = task.run(stop.signal)
  return { clock, looks, warnings, task, stop, running }
}

const cases: { name: string; answer: (second: number) => number; changes: readonly number[]; looks: readonly number[] }[] = [
  { name: 'nothing can happen: no look but the first', answer: () => never, changes: [], looks: [0] },
  { name: 'something may have happened by the next turn', answer: () => 0, changes: [], looks: [0, 5, 10, 15, 20, 25, 30] },
  { name: 'a due time between two turns waits for the second', answer: (second) => (second === 0 ? 12_000 : never), changes: [], looks: [0, 15] },
  { name: 'a due time at a turn is that turn', answer: (second) => (second === 0 ? 10_000 : never), changes: [], looks: [0, 10] },
  { name: 'a change is looked at on the next turn, once', answer: () => never, changes: [11, 12, 13], looks: [0, 15] },
  {
    name: 'a change comes before a later due time, and turns stay where they are',
    answer: (second) => 24_000 - second * 1000,
    changes: [7],
    looks: [0, 10, 25, 30],
  },
  { name: 'a change does not put off what is due before', answer: (second) => (second === 0 ? 8_000 : never), changes: [1, 9], looks: [0, 5, 10] },
]

for (const { name, answer, changes, looks: wanted } of cases)
  test(`a periodic look: ${name}`, async () => {
    const { clock, looks, task, stop, running } = setUp(answer)
    for (let second = 0; second < 30; second++) {
      if (changes.includes(second)) task.changed()
      await clock.advance(1_000)
    }
    assert.deepEqual(looks, wanted)
    stop.abort()
    await running
    assert.equal(clock.nextTimerMs(), undefined)
  })

test('a periodic look that fails is taken again at the next turn, and says so', async () => {
  const { clock, looks, warnings, stop, running } = setUp((second) => {
    if (second === 0) throw new Error('a fault on purpose')
    return never
  })
  await clock.advance(30_000)
  assert.deepEqual([looks, warnings], [[0, 5], ['A periodic task failed']])
  stop.abort()
  await running
})

test('a change during a look is looked at on the next turn', async () => {
  const during = { change: () => {} }
  const { clock, looks, task, stop, running } = setUp((second) => {
    if (second === 10) during.change()
    return second === 0 ? 10_000 : never
  })
  during.change = task.changed
  await clock.advance(30_000)
  assert.deepEqual(looks, [0, 10, 15])
  stop.abort()
  await running
})
