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

for (const [podCidr, wanted] of [
  ['10.244.3.0/29', ['10.244.3.2', '10.244.3.3', '10.244.3.4', '10.244.3.5', '10.244.3.6', '10.244.3.2']],
  ['fd00:3::/64', ['fd00:3::2', 'fd00:3::3', 'fd00:3::4', 'fd00:3::5', 'fd00:3::6', 'fd00:3::7']],
] as const)
  test(`X2 NET-08 pods of a simulated node get addresses of its range ${podCidr} in turn`, async () => {
    const clock = new VirtualClock()
    const runtime = createSimulatedRuntime({ clock, random: seededRandom(1), podCidr })
    const started: string[] = []
    for (const _ of wanted) {
      const config = {
        metadata: { name: 'a', uid: 'u', namespace: 'default', attempt: 0 },
        labels: {},
        annotations: {},
        linux: { securityContext: { namespaceOptions: { network: 'POD' } } },
      }
      const running = runtime.runPodSandbox(config as never, '')
      await clock.advance(10_000)
      started.push((await runtime.podSandboxStatus(await running))?.network?.ip ?? '')
    }
    assert.deepEqual(started, wanted)
  })

function methodsOf(clock: VirtualClock) {
  const { now, sleep, timer, turn } = clock
  return { now: now.bind(clock), sleep: sleep.bind(clock), timer: timer.bind(clock), turn: turn.bind(clock) }
}
