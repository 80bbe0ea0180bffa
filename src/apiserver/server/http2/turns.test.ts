import assert from 'node:assert/strict'
import test from 'node:test'
import { Turns, type TurnTaker } from './turns.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

function recorded(most: number) {
  const seen: string[] = []
  const turns = new Turns(most, () => seen.push('before answers'))
  /** A connection with `pending` requests, which begins as many as it may. */
  const connection = (name: string, pending = 0): TurnTaker => ({
    flush: () => void seen.push(`${name} flushes`),
    readOn() {
      const begun = Math.min(pending, 2)
      pending -= begun
      seen.push(`${name} begins ${begun}`)
      for (let more = 1; more < begun; more++) turns.take()
      if (pending > 0) turns.readOnLater(this)
    },
  })
  return { seen, turns, connection }
}

test('API-33 a limited number of requests begins per turn of the event loop', async () => {
  const { turns } = recorded(3)
  const take = () => Array.from({ length: 5 }, () => turns.take())
  assert.deepEqual(take(), [true, true, true, false, false])
  await turn()
  assert.deepEqual(take(), [true, true, true, false, false])
})

test('API-33 answers are flushed before paused connections read on, and these take turns', async () => {
  const { seen, turns, connection } = recorded(4)
  turns.flushAtEnd(connection('asked once'))
  for (const name of ['a', 'b', 'c']) turns.readOnLater(connection(name, 3))
  assert.deepEqual(seen, [])
  await turn()
  assert.deepEqual(seen.splice(0), ['before answers', 'asked once flushes', 'a begins 2', 'b begins 2'])
  await turn()
  assert.deepEqual(seen.splice(0), ['c begins 2', 'a begins 1', 'b begins 1'])
  await turn()
  assert.deepEqual(seen.splice(0), ['c begins 1'])
  await turn()
  assert.deepEqual(seen, [])
})

test('API-33 a single connection reads on once per turn', async () => {
  const { seen, turns, connection } = recorded(100)
  turns.readOnLater(connection('a', 4))
  await turn()
  assert.deepEqual(seen.splice(0), ['a begins 2'])
  await turn()
  assert.deepEqual(seen, ['a begins 2'])
})
