import assert from 'node:assert/strict'
import test from 'node:test'
import { ResetBudget } from './resetBudget.ts'

function takeAll(budget: ResetBudget, count: number, atMs: number): string[] {
  const seen = new Set<string>()
  for (let one = 0; one < count; one++) seen.add(budget.take(atMs))
  return [...seen]
}

test('API-23 a burst of resets first ends a connection gracefully, then cuts it', () => {
  const budget = new ResetBudget(0)
  assert.deepEqual([takeAll(budget, 799, 0), takeAll(budget, 199, 0), takeAll(budget, 1, 0)], [['goOn'], ['endGracefully'], ['cut']])
})

test('API-23 resets at a moderate rate never exhaust the budget', () => {
  const budget = new ResetBudget(0)
  for (let second = 0; second < 1_000; second++) assert.deepEqual(takeAll(budget, 33, second * 1_000), ['goOn'])
})
