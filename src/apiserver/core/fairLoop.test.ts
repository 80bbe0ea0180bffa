import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inSlices, withWorkers } from './fairLoop.ts'

const numbers = (length: number) => Array.from({ length }, (_, index) => index)

/** How many items were done at each turn of the event loop while `work` went on. */
async function doneAtTurns(count: number, work: (done: (item: number) => void) => Promise<void>): Promise<{ turns: number[]; all: number[] }> {
  const all: number[] = []
  const turns: number[] = []
  const look = () => {
    turns.push(all.length)
    if (all.length < count) setImmediate(look)
  }
  setImmediate(look)
  await work((item) => all.push(item))
  return { turns, all }
}

const loops = [
  { name: 'in slices', most: 220, run: (items: readonly number[], done: (item: number) => void) => inSlices(items, done) },
  // Each item takes some microtasks and nothing else, as a store in memory does.
  {
    name: 'with workers',
    most: 45,
    run: (items: readonly number[], done: (item: number) => void) =>
      withWorkers(items, 8, async (item) => {
        for (let i = 0; i < 20; i++) await undefined
        done(item)
      }),
  },
]
for (const { name, most, run } of loops) {
  test(`API-02 a long loop ${name} does everything in order and lets others have their turn`, async () => {
    const { turns, all } = await doneAtTurns(5_000, (done) => run(numbers(5_000), done))
    assert.deepEqual(all, numbers(5_000))
    for (const [index, at] of turns.entries()) assert.ok(at - (turns[index - 1] ?? 0) <= most, `${at} after ${turns[index - 1]}`)
  })
}

test('API-02 so many items are under way as there are workers, and none is begun after a failure', async () => {
  let [underWay, most] = [0, 0]
  const begun: number[] = []
  const work = async (item: number) => {
    begun.push(item)
    most = Math.max(most, ++underWay)
    await new Promise((resolve) => setImmediate(resolve))
    underWay--
    if (item === 10) throw new Error('ten')
  }
  await assert.rejects(withWorkers(numbers(1_000), 4, work), /ten/)
  assert.deepEqual([most, underWay, begun.length < 20], [4, 0, true])
})
