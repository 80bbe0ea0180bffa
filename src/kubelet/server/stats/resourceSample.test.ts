import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import type { ContainerConfig, PodSandboxConfig } from '#grpc/criTypes'
import type { FrozenPod } from '../../core/containers.ts'
import type { KubeletView } from '../../core/kubeletView.ts'
import { createSimulatedRuntime } from '../../runtime/simulated/simulatedRuntime.ts'
import { createResourceSampler } from './resourceSample.ts'
import { createUsageSource } from './usage.ts'

const startedAt = '2026-01-01T00:00:00Z'

function sandboxOf(name: string): PodSandboxConfig {
  const linux = { securityContext: { namespaceOptions: { network: 'POD' } }, sysctls: {} }
  const shared = { labels: {}, logDirectory: '/logs', linux, hostname: name, portMappings: [] }
  return {
    metadata: { name, namespace: 'default', uid: name, attempt: 0 },
    annotations: { 'skiff.dev/simulated-cpu-milli': '250' },
    ...shared,
  } as unknown as PodSandboxConfig
}

function containerOf(name: string): ContainerConfig {
  const linux = { resources: { cpuShares: 102, memoryLimitInBytes: 64 * 2 ** 20 } }
  const nothing = { labels: {}, annotations: {}, command: [], args: [], envs: [], logPath: name }
  return { metadata: { name, attempt: 0 }, image: { image: 'a:1' }, linux, ...nothing } as unknown as ContainerConfig
}

/** Two pods with two containers each, in a simulated runtime and as a kubelet shows them. */
async function startedPods(clock: VirtualClock) {
  const runtime = createSimulatedRuntime({ clock, random: seededRandom(1), podCidr: '10.0.0.0/24' })
  const start = async (name: string): Promise<FrozenPod> => {
    const sandbox = sandboxOf(name)
    const podSandboxId = await runtime.runPodSandbox(sandbox, '')
    const containerStatuses = []
    for (const container of ['main', 'side']) {
      const id = await runtime.createContainer(podSandboxId, containerOf(container), sandbox)
      await runtime.startContainer(id)
      containerStatuses.push({ name: container, image: 'a:1', containerID: `simulated://${id}`, state: { running: { startedAt } } })
    }
    return { metadata: { name, namespace: 'default', uid: name }, spec: { containers: [] }, status: { containerStatuses } } as unknown as FrozenPod
  }
  const starting = Promise.all(['a', 'b'].map(start))
  await clock.advance(5_000)
  const pods = await starting
  const view = { runtime, pods: () => pods, podStatus: () => undefined, context: () => undefined, config: {} } as unknown as KubeletView
  return { runtime, view }
}

test('OBS-10 the sample of a simulated node has the figures of its usage, also after a container has ended', async () => {
  const clock = new VirtualClock(startedAt)
  const { runtime, view } = await startedPods(clock)
  const [sample, usage] = [createResourceSampler(view, clock), createUsageSource(view, clock)]
  const figures = async () => {
    const [{ node, pods }, wanted] = [await sample(), await usage.now()]
    assert.deepEqual(node, { startedAtMs: 0, atMs: wanted.node.atMs, cpuNs: wanted.node.cpuNs, memoryBytes: wanted.node.memory.workingSetBytes })
    const points = [...pods].flatMap(([pod, containers]) => [...containers].map(([name, point]) => [pod, name, point]))
    assert.deepEqual(
      points,
      wanted.pods.flatMap(({ uid, containers }) =>
        containers.map(({ container, startedAtMs, atMs, cpuNs, memory }) => [
          `default/${uid}`,
          container,
          { startedAtMs, atMs, cpuNs, memoryBytes: memory.workingSetBytes },
        ]),
      ),
    )
    return { node, containers: points.length }
  }
  const first = await figures()
  assert.equal(first.containers, 4)
  assert.ok(first.node.cpuNs > 0 && first.node.memoryBytes > 0)
  await clock.advance(10_000)
  runtime.exit({ namespace: 'default', name: 'a' }, { exitCode: 0 })
  const second = await figures()
  assert.equal(second.containers, 2)
  assert.ok(second.node.cpuNs > first.node.cpuNs, 'the CPU time of ended containers stays')
  await clock.advance(1_000)
  assert.deepEqual(await figures(), second, 'a measurement is kept for some seconds')
})
