/** The CPU counter of simulated containers: a counter of the real kind, which metrics pipelines compute rates from. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import type { ContainerConfig, PodSandboxConfig } from '#grpc/criTypes'
import { simulatedAnnotations } from './annotations.ts'
import { defaultProfile } from './profile.ts'
import { createSimulatedRuntime } from './simulatedRuntime.ts'

/** A clock that can be set back, as that of a machine. */
class SettableClock extends VirtualClock {
  offsetMs = 0

  override now(): number {
    return super.now() + this.offsetMs
  }
}

interface Settings {
  readonly annotations?: Record<string, string>
  readonly cpuShares?: number
  cpuMilli?(): number
}

/** A container that has just started. */
async function started({ annotations = {}, cpuShares = 1024, cpuMilli }: Settings) {
  const clock = new SettableClock()
  const profile = { ...defaultProfile, behave: () => (cpuMilli ? { cpuMilli: cpuMilli() } : {}) }
  const runtime = createSimulatedRuntime({ clock, random: seededRandom(1), podCidr: '10.0.0.0/24', profile })
  const metadata = { name: 'pod', namespace: 'default', uid: 'u', attempt: 0 }
  const security = { securityContext: { namespaceOptions: { network: 'POD' } } }
  const sandbox = { metadata, labels: {}, annotations, logDirectory: '/logs', linux: security } as unknown as PodSandboxConfig
  const linux = { resources: { cpuShares } }
  const config = { metadata: { name: 'main', attempt: 0 }, image: { image: 'app' }, labels: {}, annotations: {}, logPath: 'main.log', linux }
  const settle = async <T>(work: Promise<T>): Promise<T> => {
    await clock.advance(1_000)
    return work
  }
  const sandboxId = await settle(runtime.runPodSandbox(sandbox, '', undefined))
  const id = await runtime.createContainer(sandboxId, config as unknown as ContainerConfig, sandbox)
  const starting = runtime.startContainer(id)
  await clock.advance(defaultProfile.startDelayMs)
  await starting
  const seconds = async () => {
    const [stats] = await runtime.listContainerStats()
    return (stats?.cpu?.usageCoreNanoSeconds?.value ?? Number.NaN) / 1e9
  }
  return { clock, seconds, resize: (shares: number) => runtime.updateContainerResources(id, { cpuShares: shares }) }
}

test('OBS-10 X2 the CPU counter of a simulated container grows by a tenth of its request', async () => {
  const { clock, seconds } = await started({ cpuShares: 2048 })
  assert.equal(await seconds(), 0)
  await clock.advance(10_000)
  assert.equal(await seconds(), 2)
  await clock.advance(5_000)
  assert.equal(await seconds(), 3)
})

test('OBS-10 X2 the CPU counter of a simulated container grows by the annotated usage, whatever its request', async () => {
  const { clock, seconds } = await started({ annotations: { [simulatedAnnotations.cpuMilli]: '250' } })
  await clock.advance(100_000)
  assert.equal(await seconds(), 25)
})

test('OBS-10 X2 the CPU counter of a simulated container does not fall, its request is made smaller', async () => {
  const { clock, seconds, resize } = await started({ cpuShares: 10_240 })
  await clock.advance(60_000)
  assert.equal(await seconds(), 60)
  await clock.advance(10_000)
  await resize(1024)
  assert.equal(await seconds(), 70)
  await clock.advance(10_000)
  assert.equal(await seconds(), 71)
})

test('OBS-10 X2 the CPU counter of a simulated container does not fall, code makes it idle', async () => {
  let milli = 1000
  const { clock, seconds } = await started({ cpuMilli: () => milli })
  await clock.advance(60_000)
  assert.equal(await seconds(), 60)
  milli = 0
  await clock.advance(60_000)
  assert.equal(await seconds(), 60)
})

test('OBS-10 X2 the CPU counter of a simulated container does not fall, the clock is set back', async () => {
  const { clock, seconds } = await started({ annotations: { [simulatedAnnotations.cpuMilli]: '1000' } })
  await clock.advance(60_000)
  assert.equal(await seconds(), 60)
  clock.offsetMs = -30_000
  assert.equal(await seconds(), 60)
  await clock.advance(40_000)
  assert.equal(await seconds(), 70)
})
