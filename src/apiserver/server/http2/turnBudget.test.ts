import assert from 'node:assert/strict'
import test from 'node:test'
import { TurnBudget } from './turnBudget.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('API-33 so many requests begin in a turn of the event loop, and as many again in the next', async () => {
  const budget = new TurnBudget(3)
  const take = () => Array.from({ length: 5 }, () => budget.take())
  assert.deepEqual(take(), [true, true, true, false, false])
  await turn()
  assert.deepEqual(take(), [true, true, true, false, false])
})

test('API-33 who was told to wait asks again after the budget is there again', async () => {
  const budget = new TurnBudget(1)
  budget.take()
  const again = new Promise<boolean>((resolve) => {
    assert.equal(budget.take(), false)
    setImmediate(() => resolve(budget.take()))
  })
  assert.equal(await again, true)
})
