/** The kubelet waits for the pod network between a sandbox and its containers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { events, pods } from '#client/builtIn'
import type { PodNetwork } from '#kubelet/core/context'
import { createKubelet } from '#kubelet/kubelet'
import { defaultProfile } from '#kubelet/runtime/simulated/profile'
import { createSimulatedRuntime } from '#kubelet/runtime/simulated/simulatedRuntime'
import { startTestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { simulatedMachine } from '../../support/simulatedMachine.ts'
import { until } from '../../support/until.ts'

const profile = { ...defaultProfile, sandboxDelayMs: 1, startDelayMs: 1, stopDelayMs: 1, pullDelayMs: 1 }
const nodeName = 'n1'

const pod = (name: string, more: Partial<Pod['spec']> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', labels: { app: name } },
  spec: { nodeName, containers: [{ name: 'main', image: 'example.com/app:1' }], ...more },
  status: {},
})

/** Runs a kubelet whose pod network the test plays. */
async function withNetwork(podNetwork: PodNetwork, run: (world: World) => Promise<void>): Promise<void> {
  const api = await startTestApiServer()
  const stop = new AbortController()
  const runtime = createSimulatedRuntime({ clock: realClock, random: seededRandom(1), profile, podCidr: '10.0.0.0/24' })
  const deps = { client: api.client, clock: realClock, random: seededRandom(1), log: noLog, metrics: noMetrics, runtime, machine: simulatedMachine, podNetwork }
  const kubelet = createKubelet(deps, { nodeName, nodeIPs: ['192.0.2.1'], syncFrequencyMs: 0, relistPeriodMs: 0, containerGCPeriodMs: 5 })
  const running = kubelet.run(stop.signal)
  try {
    await kubelet.registered
    await run({ client: api.client, runtime })
  } finally {
    stop.abort()
    await running
    await api.close()
  }
}

type World = Pick<Awaited<ReturnType<typeof startTestApiServer>>, 'client'> & { readonly runtime: ReturnType<typeof createSimulatedRuntime> }

test('NPO-02 containers start when the network is ready for the addresses of the sandbox', async () => {
  const asked: { readonly labels: unknown; readonly addresses: readonly string[]; readonly ready: () => void }[] = []
  const network: PodNetwork = {
    podNetworkReady: ({ metadata }, addresses) => new Promise((resolve) => asked.push({ labels: metadata.labels, addresses, ready: resolve })),
  }
  await withNetwork(network, async ({ client, runtime }) => {
    await client.of(pods).create(pod('web'))
    await until('the network is asked', async () => asked.length === 1)
    assert.deepEqual(asked[0]?.labels, { app: 'web' })
    assert.match(asked[0]?.addresses.join() ?? '', /^10\.0\.0\.\d+$/)
    assert.equal((await runtime.listPodSandbox()).length, 1)
    assert.deepEqual(await runtime.listContainers(), [])
    asked[0]?.ready()
    await until('the container runs', async () => (await runtime.listContainers()).some(({ state }) => state === 'CONTAINER_RUNNING'))
  })
})

test('NPO-02 a network that is not ready is an event, and the pod starts later in the same sandbox', async () => {
  let failures = 2
  const network: PodNetwork = {
    podNetworkReady: async () => {
      if (failures-- > 0) throw new Error('the rules are not in force')
    },
  }
  await withNetwork(network, async ({ client, runtime }) => {
    await client.of(pods).create(pod('web'))
    await until('the container runs', async () => (await runtime.listContainers()).some(({ state }) => state === 'CONTAINER_RUNNING'))
    assert.equal(failures, -1)
    assert.equal((await runtime.listPodSandbox()).length, 1)
    await until('the event', async () => {
      const { items } = await client.of(events).list({ namespace: 'default' })
      return items.some(({ reason, message }) => reason === 'NetworkNotReady' && message === 'network is not ready: the rules are not in force')
    })
  })
})

test('NPO-02 a pod on the host’s network does not wait for the pod network', async () => {
  const network: PodNetwork = { podNetworkReady: async () => assert.fail('asked') }
  await withNetwork(network, async ({ client, runtime }) => {
    await client.of(pods).create(pod('web', { hostNetwork: true }))
    await until('the container runs', async () => (await runtime.listContainers()).some(({ state }) => state === 'CONTAINER_RUNNING'))
  })
})
