import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createSimulatedRuntime } from './simulatedRuntime.ts'

test('X2 the network of a node without a range of addresses is ready when the wait is over, even if the timer fires a fraction of a millisecond early', async () => {
  const clock = new VirtualClock()
  const startMs = clock.monotonicMs()
  const late = { ...methodsOf(clock), monotonicMs: () => (clock.monotonicMs() === startMs ? startMs : clock.monotonicMs() - 0.7) }
  const runtime = createSimulatedRuntime({ clock: late, random: seededRandom(1) })
  const isReady = async () => (await runtime.status()).conditions.find(({ type }) => type === 'NetworkReady')?.status
  const reported: Promise<boolean | undefined>[] = []
  runtime.onStatusChange?.(() => void reported.push(isReady()))
  assert.equal(await isReady(), false)
  await clock.advance(3_000)
  assert.deepEqual(await Promise.all(reported), [true])
})

function methodsOf(clock: VirtualClock) {
  const { now, sleep, timer, turn } = clock
  return { now: now.bind(clock), sleep: sleep.bind(clock), timer: timer.bind(clock), turn: turn.bind(clock) }
}
