import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ContainerStatus, Pod, PodStatus } from '#api/gen/types/core.v1'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { annotationKeys, containerHash } from '../../core/runtimeLabels.ts'
import { createSimulatedRuntime } from './simulatedRuntime.ts'

const startedAt = '2026-01-01T00:00:00Z'
const main = { name: 'main', image: 'example.com/app:1' }
const running: Partial<ContainerStatus> = { containerID: 'simulated://aa', state: { running: { startedAt } } }

function podWith(of: Partial<ContainerStatus>, status: Partial<PodStatus> = {}): Pod {
  const container: ContainerStatus = { ...{ name: 'main', image: main.image, imageID: main.image, ready: true, restartCount: 3 }, ...of }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default', uid: 'u1' },
    spec: { containers: [main] },
    status: { ...{ phase: 'Running', startTime: startedAt, podIPs: [{ ip: '10.0.0.2' }] }, containerStatuses: [container], ...status },
  }
}

async function adopted(pod: Pod) {
  const runtime = createSimulatedRuntime({ clock: new VirtualClock('2026-01-01T01:00:00Z'), random: seededRandom(1), podCidr: '10.0.0.0/24' })
  runtime.adopt(pod)
  const containers = await Promise.all((await runtime.listContainers()).map(({ id }) => runtime.containerStatus(id)))
  const [sandbox] = await runtime.listPodSandbox()
  return { runtime, containers, sandbox: sandbox && (await runtime.podSandboxStatus(sandbox.id)) }
}

test('ARC-13 a running container is adopted with its id, start, restart count and address', async () => {
  const { containers, sandbox } = await adopted(podWith(running))
  const [one] = containers
  assert.deepEqual([one?.id, one?.state, one?.startedAt, one?.metadata.attempt], ['aa', 'CONTAINER_RUNNING', Date.parse(startedAt) * 1e6, 3])
  assert.deepEqual([sandbox?.state, sandbox?.network?.ip], ['SANDBOX_READY', '10.0.0.2'])
})

test('ARC-13 a container that waits for its next start is adopted as ended, after its earlier run', async () => {
  const ended = (id: string, exitCode: number) => ({
    terminated: { exitCode, reason: 'Error', startedAt, finishedAt: startedAt, containerID: `simulated://${id}` },
  })
  const waiting = { containerID: 'simulated://bb', state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: ended('bb', 2) }
  const again = { containerID: 'simulated://cc', state: { running: { startedAt } }, lastState: ended('bb', 2) }
  const statesOf = async (of: Partial<ContainerStatus>) =>
    (await adopted(podWith(of))).containers.map((one) => [one?.id, one?.state, one?.exitCode, one?.metadata.attempt])
  assert.deepEqual(await statesOf(waiting), [['bb', 'CONTAINER_EXITED', 2, 3]])
  assert.deepEqual(await statesOf(again), [
    ['cc', 'CONTAINER_RUNNING', 0, 3],
    ['bb', 'CONTAINER_EXITED', 2, 2],
  ])
})

test('ARC-13 a sandbox whose containers have all ended is adopted as the condition of the pod reports it', async () => {
  const of = { containerID: 'simulated://aa', state: { terminated: { exitCode: 1, startedAt, finishedAt: startedAt, containerID: 'simulated://aa' } } }
  const condition = (status: string) => ({ conditions: [{ type: 'PodReadyToStartContainers', status }] })
  assert.equal((await adopted(podWith(of, condition('True')))).sandbox?.state, 'SANDBOX_READY')
  assert.equal((await adopted(podWith(of, condition('False')))).sandbox?.state, 'SANDBOX_NOTREADY')
})

const notAdopted: Readonly<Record<string, Pod>> = {
  'that has ended': podWith(running, { phase: 'Succeeded' }),
  'of another runtime': podWith({ ...running, containerID: 'containerd://aa', state: {} }),
  'that nothing was started of': podWith({ state: { waiting: { reason: 'ContainerCreating' } } }),
}
for (const [name, pod] of Object.entries(notAdopted)) {
  test(`ARC-13 a pod ${name} is not adopted`, async () => assert.equal((await adopted(pod)).sandbox, undefined))
}

test('ARC-13 a container whose image was changed meanwhile has the hash of the image that it runs', async () => {
  const hashOf = async (image: string) => (await adopted(podWith({ ...running, image }))).containers[0]?.annotations[annotationKeys.hash]
  assert.equal(await hashOf(main.image), containerHash(main))
  assert.equal(await hashOf('example.com/app:0'), containerHash({ name: 'main', image: 'example.com/app:0' }))
})
