import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLanes } from './lanes.ts'

/** Tasks that end when the test ends them. */
function tasks() {
  const under: string[] = []
  const ends = new Map<string, () => void>()
  const settle = async () => {
    for (let i = 0; i < 20; i++) await Promise.resolve()
  }
  return {
    under,
    settle,
    task: (name: string) => () => {
      under.push(name)
      return new Promise<void>((resolve) => ends.set(name, resolve))
    },
    end: async (name: string) => {
      under.splice(under.indexOf(name), 1)
      ends.get(name)?.()
      await settle()
    },
  }
}

test('tasks of one lane run in order, tasks of different lanes in parallel up to the limit', async () => {
  const lanes = createLanes(2)
  const { under, settle, task, end } = tasks()
  lanes.add('a', task('a1'))
  lanes.add('a', task('a2'))
  lanes.add('b', task('b1'))
  lanes.add('c', task('c1'))
  await settle()
  assert.deepEqual(under, ['a1', 'b1'])
  let idle = false
  const waiting = lanes.idle().then(() => {
    idle = true
  })
  await end('a1')
  assert.deepEqual(under, ['b1', 'c1'], 'the lane that waited longest comes first')
  await end('c1')
  assert.deepEqual(under, ['b1', 'a2'])
  await end('b1')
  assert.deepEqual([lanes.size, idle], [1, false])
  await end('a2')
  await waiting
  assert.equal(lanes.size, 0)
})

test('a task that fails delays no other task', async () => {
  const lanes = createLanes(1)
  let ran = false
  lanes.add('a', () => Promise.reject(new Error('fault')))
  lanes.add('a', async () => {
    ran = true
  })
  await lanes.idle()
  assert.equal(ran, true)
})
