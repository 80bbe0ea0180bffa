import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { pods } from '#client/builtIn'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import type { RuntimeService } from '#kubelet/core/runtimeService'
import { createKubelet, type Kubelet } from '#kubelet/kubelet'
import { defaultProfile } from '#kubelet/runtime/simulated/profile'
import { createSimulatedRuntime } from '#kubelet/runtime/simulated/simulatedRuntime'
import { createResourceSampler, type ResourcePoint } from '#kubelet/server/stats/resourceSample'
import { startTestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { simulatedMachine } from '../../support/simulatedMachine.ts'
import { until } from '../../support/until.ts'

const profile = { ...defaultProfile, sandboxDelayMs: 1, startDelayMs: 1, stopDelayMs: 1, pullDelayMs: 1 }
const nodeName = 'n1'

/** The same client, whose API server answers only while it is reachable. */
function interrupted({ transport }: Client, isReachable: () => boolean): Client {
  return createClient({
    request: async (request, signal) => {
      if (!isReachable()) throw new Error('connect ECONNREFUSED')
      return transport.request(request, signal)
    },
    watch: transport.watch,
  })
}

async function withKubelet(client: Client, runtime: RuntimeService, run: (kubelet: Kubelet) => Promise<void>): Promise<void> {
  const stop = new AbortController()
  const deps = { client, clock: realClock, random: seededRandom(1), log: noLog, metrics: noMetrics, runtime, machine: simulatedMachine }
  const kubelet = createKubelet(deps, { nodeName, nodeIPs: ['192.0.2.1'], syncFrequencyMs: 0, relistPeriodMs: 0, containerGCPeriodMs: 5 })
  const running = kubelet.run(stop.signal)
  try {
    await run(kubelet)
  } finally {
    stop.abort()
    await running
  }
}

test('KUB-02 a kubelet that starts while the API server is away lets the pods of before run, and removes only who is gone afterwards', async () => {
  const api = await startTestApiServer()
  try {
    const runtime = createSimulatedRuntime({ clock: realClock, random: seededRandom(1), profile, podCidr: '10.0.0.0/24' })
    const running = async () => (await runtime.listContainers()).filter(({ state }) => state === 'CONTAINER_RUNNING').map(({ id }) => id)
    const pod = (name: string) => ({ metadata: { name, namespace: 'default' }, spec: { nodeName, containers: [{ name: 'main', image: 'example.com/app:1' }] } })
    await withKubelet(api.client, runtime, async ({ registered }) => {
      await registered
      for (const name of ['stays', 'goes']) await api.client.of(pods).create(pod(name) as Pod)
      await until('both run', async () => (await running()).length === 2)
    })
    const before = await running()
    await api.client.of(pods).delete({ namespace: 'default', name: 'goes' }, { gracePeriodSeconds: 0 })
    let reachable = false
    const client = interrupted(api.client, () => reachable)
    await withKubelet(client, runtime, async ({ view }) => {
      for (let pass = 0; pass < 3; pass++) {
        const entered = view.latestLoopEntryMs()
        await until('the pods were gone through', () => view.latestLoopEntryMs() !== entered)
      }
      assert.deepEqual(await running(), before)
      reachable = true
      await until('one is gone', async () => (await running()).length === 1)
    })
    const [left] = await runtime.listContainers()
    assert.deepEqual([left?.id, left?.labels['io.kubernetes.pod.name']], [before[0], 'stays'])
  } finally {
    await api.close()
  }
})

test('KUB-02 OBS-10 the CPU counter of a simulated pod keeps growing over restarts of the kubelet, and begins at zero with a new start time in a new container', async () => {
  const api = await startTestApiServer()
  try {
    const newRuntime = () => createSimulatedRuntime({ clock: realClock, random: seededRandom(1), profile, podCidr: '10.0.0.0/24' })
    const annotations = { 'skiff.dev/simulated-cpu-milli': '500' }
    const spec = { nodeName, containers: [{ name: 'main', image: 'example.com/app:1' }] }
    /** Starts a kubelet, and measures once the pod runs. */
    const measured = async (runtime: RuntimeService, prepare = async () => {}) => {
      let point: ResourcePoint | undefined
      await withKubelet(api.client, runtime, async ({ registered, view }) => {
        await registered
        await prepare()
        await until('the pod is measured', async () => {
          // A sampler keeps a measurement for seconds.
          point = (await createResourceSampler(view, realClock)()).pods.get('default/busy')?.get('main')
          return point !== undefined && point.cpuNs > 0
        })
      })
      return point as ResourcePoint
    }
    const runtime = newRuntime()
    const first = await measured(runtime, async () => {
      await api.client.of(pods).create({ metadata: { name: 'busy', namespace: 'default', annotations }, spec })
    })
    const second = await measured(runtime)
    assert.equal(second.startedAtMs, first.startedAtMs)
    assert.equal(second.cpuNs - first.cpuNs, 0.5e6 * (second.atMs - first.atMs))
    // The status of a container has the second of its start.
    await until('the next second', async () => Math.floor(realClock.now() / 1000) > Math.floor(second.atMs / 1000))
    const anew = await measured(newRuntime())
    assert.ok(anew.startedAtMs >= second.atMs, 'the start tells that the counter began again')
    assert.ok(anew.cpuNs <= 0.5e6 * (anew.atMs - second.atMs))
  } finally {
    await api.close()
  }
})
