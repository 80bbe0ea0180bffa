/** Moving the time of a cluster from outside (X3, X10), over a virtual clock in place of the cluster's and one in place of the machine's. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { ClockControl } from './clockControl.ts'

const start = '2026-01-01T00:00:00.000Z'

function setUp() {
  const [cluster, machine] = [new VirtualClock(start), new VirtualClock(start)]
  return { cluster, machine, control: new ClockControl(cluster, machine) }
}

/** Turns of the event loop, in which the machine's time stands still. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

test('X3 a cluster’s time stands still until it is moved', async () => {
  const { machine, control } = setUp()
  await machine.advance(60_000)
  assert.deepEqual(control.state, { now: start, speed: 0, stepMs: 0 })
})

test('X3 a step lets its time pass once, with all that falls due in order', async () => {
  const { cluster, control } = setUp()
  const fired: number[] = []
  for (const ms of [90_000, 30_000, 120_001]) cluster.timer(ms, () => void fired.push(ms))
  control.step(100_000)
  control.step(20_000)
  assert.equal(control.state.stepMs, 120_000)
  await turns()
  assert.deepEqual(fired, [30_000, 90_000])
  assert.deepEqual(control.state, { now: '2026-01-01T00:02:00.000Z', speed: 0, stepMs: 0 })
})

test('X3 at a speed, so many seconds pass in one of the machine, until it is 0', async () => {
  const { machine, control } = setUp()
  control.setSpeed(60)
  await turns()
  for (let second = 0; second < 10; second++) {
    await machine.advance(100)
    await turns()
  }
  const passed = Date.parse(control.state.now) - Date.parse(start)
  assert.ok(passed >= 50_000 && passed <= 60_000, `${passed} ms`)
  control.setSpeed(0)
  await machine.advance(1_000)
  await turns()
  const stopped = control.state
  await machine.advance(60_000)
  assert.deepEqual(control.state, stopped)
})

test('X3 the speed 0 drops what is left of a step', async () => {
  const { control, cluster } = setUp()
  cluster.timer(5_000, () => control.setSpeed(0))
  control.step(86_400_000)
  await turns()
  assert.deepEqual(control.state, { now: '2026-01-01T00:00:10.000Z', speed: 0, stepMs: 0 })
})

test('X3 a clock that stops says that it moves until the time stands still', async () => {
  const { control, cluster } = setUp()
  const seen: { now: string; stepMs: number }[] = []
  cluster.timer(5_000, () => {
    control.setSpeed(0)
    seen.push(control.state)
  })
  control.step(60_000)
  await turns()
  assert.deepEqual(seen, [{ now: '2026-01-01T00:00:05.000Z', speed: 0, stepMs: 60_000 }])
  assert.deepEqual(control.state, { now: '2026-01-01T00:00:10.000Z', speed: 0, stepMs: 0 })
})

test('X3 work that never comes to rest stops the time and is named, until the time is moved again', async () => {
  const { control, cluster } = setUp()
  cluster.timer(1_000, () => cluster.runaway(new Error('the controller writes on every run')))
  control.step(2_000)
  await turns()
  const { failure, speed, stepMs } = control.state
  assert.deepEqual({ failure, speed, stepMs }, { failure: 'the controller writes on every run', speed: 0, stepMs: 0 })
  control.step(1_000)
  await turns()
  assert.equal(control.state.failure, undefined)
})
