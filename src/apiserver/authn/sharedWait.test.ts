import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Cancellation } from '../core/cancellation.ts'
import { sharedWait } from './sharedWait.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Waits that end by hand, in order. */
function waits() {
  const ends: ((error?: Error) => void)[] = []
  const wait = sharedWait(() => new Promise<void>((resolve, reject) => ends.push((error) => (error ? reject(error) : resolve()))))
  return { ends, wait }
}

test('AUN-03 a thousand requests that come during one wait share the next, and none that came later is let go by the first', async () => {
  const { ends, wait } = waits()
  const first = wait()
  await turn()
  let gone = 0
  const others = Array.from({ length: 1_000 }, () => wait().then(() => gone++))
  await turn()
  assert.equal(ends.length, 1)
  ends[0]?.()
  await first
  await turn()
  assert.deepEqual([ends.length, gone], [2, 0])
  ends[1]?.(new Error('the store is out of reach'))
  await Promise.all(others)
  const last = wait()
  await turn()
  ends[2]?.()
  await last
})

test('AUN-03 a request that is cancelled ends its own wait, and the others still wait', async () => {
  const { ends, wait } = waits()
  const cancellation = new Cancellation()
  const cancelled = wait(cancellation)
  let isOver = false
  const other = wait(new Cancellation()).then(() => {
    isOver = true
  })
  await turn()
  cancellation.abort(new Error('the client left'))
  await cancelled
  await turn()
  assert.equal(isOver, false)
  ends[0]?.()
  await other
})
