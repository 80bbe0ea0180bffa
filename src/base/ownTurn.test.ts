import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from './clock.ts'
import { ownTurn } from './ownTurn.ts'

test('each caller that asks for a turn of its own continues in another turn of the event loop', async () => {
  let turn = 0
  const clock = {
    turn: () =>
      new Promise<void>((resolve) => {
        setImmediate(resolve)
      }),
  } as Clock
  let isOver = false
  const count = () => {
    turn++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const turns = await Promise.all(Array.from({ length: 5 }, () => ownTurn(clock).then(() => turn)))
  isOver = true
  assert.equal(new Set(turns).size, 5, turns.join())
})
