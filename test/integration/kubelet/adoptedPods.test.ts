/**
 * A process with simulated nodes ends and another one starts: the pods continue as their statuses in the API report them. Real containers outlive their kubelet, too.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, PodSpec } from '#api/gen/types/core.v1'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { pods } from '#client/builtIn'
import { createEventWriter } from '#client/eventRecorder'
import { createKubelet } from '#kubelet/kubelet'
import { adoptingPods } from '#kubelet/runtime/simulated/adoption'
import { simulatedAnnotations } from '#kubelet/runtime/simulated/annotations'
import { simulatedMachine } from '#kubelet/runtime/simulated/machine'
import { createSimulatedRuntime } from '#kubelet/runtime/simulated/simulatedRuntime'
import { createSharedSources } from '#kubelet/sources/sharedSources'
import { standBy } from '#kubelet/standBy'
import { startCluster, type TestCluster } from '#testing/cluster'

type Says = Partial<Record<keyof typeof simulatedAnnotations, string>>

interface Script {
  readonly says?: Says
  readonly spec?: Partial<PodSpec>
}

const [namespace, nodeName] = ['default', 'node']
const main = { name: 'main', image: 'example.com/app:1' }
const probe = { exec: { command: ['true'] }, periodSeconds: 5, failureThreshold: 2 }
/** Pods that are at rest two minutes after their creation. */
const atRest: Readonly<Record<string, Script>> = {
  plain: {},
  limited: { spec: { containers: [{ ...main, resources: { requests: { cpu: '100m' }, limits: { memory: '64Mi' } } }] } },
  shares: { spec: { hostNetwork: true } },
  restarted: { says: { exitAfterSeconds: '3', exitCode: '3', exitTimes: '2' } },
  'one-ended': { spec: { restartPolicy: 'OnFailure', containers: [main, { name: 'other', image: 'o:1' }] } },
  succeeded: { spec: { restartPolicy: 'Never' } },
  failed: { says: { exitAfterSeconds: '3', exitCode: '3' }, spec: { restartPolicy: 'Never' } },
  initialized: {
    spec: {
      initContainers: [
        { name: 'side', image: 's:1', restartPolicy: 'Always' },
        { name: 'first', image: 'i:1' },
      ],
    },
  },
  ready: { spec: { containers: [{ ...main, readinessProbe: probe, livenessProbe: probe }] } },
  started: { says: { startup: 'fail 12s, pass' }, spec: { containers: [{ ...main, startupProbe: { ...probe, failureThreshold: 5 } }] } },
  gated: { spec: { readinessGates: [{ conditionType: 'example.com/ready' }] } },
}
const podCount = 200

async function create({ client }: TestCluster, name: string, { says = {}, spec = {} }: Script): Promise<void> {
  const annotations = Object.fromEntries(Object.entries(says).map(([key, value]) => [simulatedAnnotations[key as keyof Says], value]))
  const whole = { nodeName, terminationGracePeriodSeconds: 30, containers: [main], ...spec } as PodSpec
  // One of two containers succeeds, and its pod runs on.
  const ends = name.startsWith('one-ended') ? { [`${simulatedAnnotations.exitAfterSeconds}.other`]: '2' } : {}
  await client.of(pods).create({ metadata: { namespace, name, annotations: { ...annotations, ...ends } }, spec: whole })
}

/** A process with one simulated node, as `skiff up` runs it: a runtime of its own, which knows no pods. */
function startProcess(cluster: TestCluster, seed: number): () => Promise<void> {
  const { clock, log } = cluster
  const stop = new AbortController()
  const tools = { clock, log, random: seededRandom(seed) }
  const shared = createSharedSources({ ...tools, client: cluster.client }, stop.signal)
  const runtime = createSimulatedRuntime({ clock, random: seededRandom(seed + 100), podCidr: '10.244.0.0/16' })
  const deps = {
    ...tools,
    ...{ metrics: noMetrics, machine: simulatedMachine('machine'), runtime },
    client: cluster.clientAs({ name: `system:node:${nodeName}`, groups: ['system:nodes', 'system:authenticated'] }),
    eventWriter: createEventWriter(tools, 10_000, stop.signal),
    sources: { ...shared, pods: adoptingPods(shared.pods, runtime, log) },
  }
  const config = { nodeName, nodeIPs: ['198.18.0.1'], maxPods: 500, relistPeriodMs: 0, syncFrequencyMs: 0 }
  const running = createKubelet(deps, config, standBy).run(stop.signal)
  return async () => {
    stop.abort()
    void clock.advance(5_000)
    await running
  }
}

const start = () =>
  startCluster({
    ...{ nodes: 0, controllers: false, scheduler: false, recordHistory: true },
    apiServerArgs: ['--disable-admission-plugins=ServiceAccount'],
  })

const podOf = ({ client }: TestCluster, name: string): Promise<Pod> => client.of(pods).get({ namespace, name }) as Promise<Pod>
const mainOf = ({ status }: Pod) => status?.containerStatuses?.find(({ name }) => name === 'main')

/** What was written about pods and as events since the mark, as key and value. */
function writesSince(cluster: TestCluster, mark: number): string[] {
  const isAboutPods = ({ key }: { readonly key: string }) => /^\/registry\/(pods|events)\//.test(key) && !key.includes(`/${nodeName}.`)
  return cluster
    .history()
    .slice(mark)
    .filter(isAboutPods)
    .map(({ type, key, value }) => `${type} ${key} ${value}`)
}

test('ARC-13 KUB-02 simulated pods continue after a restart of their process, without a write or an event', async () => {
  await using cluster = await start()
  const end = startProcess(cluster, 1)
  await cluster.clock.advance(10_000)
  const names = Array.from({ length: podCount }, (_, index) => `${Object.keys(atRest)[index % Object.keys(atRest).length]}-${index}`)
  for (const name of names) await create(cluster, name, atRest[name.slice(0, name.lastIndexOf('-'))] as Script)
  await cluster.clock.advance(120_000)
  await end()
  const before = await Promise.all(names.map((name) => podOf(cluster, name)))
  const counts = (name: string) => before.filter(({ metadata }) => metadata.name?.startsWith(`${name}-`)).map((pod) => mainOf(pod)?.restartCount)
  assert.ok(counts('restarted').every((count) => count === 2))
  assert.ok(before.some(({ status }) => status?.containerStatuses?.some(({ state }) => state?.terminated?.exitCode === 0) && status.phase === 'Running'))
  const mark = cluster.history().length
  const endAgain = startProcess(cluster, 2)
  await cluster.clock.advance(300_000)
  assert.deepEqual(writesSince(cluster, mark), [])
  assert.ok(cluster.history().length > mark, 'the node renews its Lease')
  await endAgain()
})

test('ARC-13 a pod that starts after the restart finds its image on the node, and has an address of its own', async () => {
  await using cluster = await start()
  const end = startProcess(cluster, 1)
  await cluster.clock.advance(10_000)
  for (const name of ['a', 'b', 'c']) await create(cluster, name, {})
  await cluster.clock.advance(20_000)
  await end()
  const endAgain = startProcess(cluster, 2)
  await cluster.clock.advance(10_000)
  const mark = cluster.history().length
  await create(cluster, 'd', {})
  await cluster.clock.advance(20_000)
  const all = await Promise.all(['a', 'b', 'c', 'd'].map((name) => podOf(cluster, name)))
  assert.deepEqual(
    all.map(({ status }) => status?.phase),
    ['Running', 'Running', 'Running', 'Running'],
  )
  assert.equal(new Set(all.map(({ status }) => status?.podIP)).size, 4)
  assert.equal(mainOf(all[3] as Pod)?.image, main.image)
  const events = writesSince(cluster, mark).filter((line) => line.includes('/registry/events/'))
  assert.ok(events.some((line) => line.includes('already present on machine')))
  assert.ok(!events.some((line) => line.includes('Pulling image')))
  await endAgain()
})

test('ARC-13 what was to happen to a pod happens at its time, in the process of before or in a later one', async () => {
  await using cluster = await start()
  const end = startProcess(cluster, 1)
  await cluster.clock.advance(10_000)
  const startMs = cluster.clock.now()
  await create(cluster, 'ends', { says: { exitAfterSeconds: '200', exitCode: '4' }, spec: { restartPolicy: 'Never' } })
  await create(cluster, 'ended', { says: { exitAfterSeconds: '62', exitCode: '5' }, spec: { restartPolicy: 'Never' } })
  await create(cluster, 'falls', { says: { readiness: 'pass 150s, fail' }, spec: { containers: [{ ...main, readinessProbe: probe }] } })
  await create(cluster, 'dies', { says: { liveness: 'pass 150s, fail' }, spec: { containers: [{ ...main, livenessProbe: probe }] } })
  await create(cluster, 'loops', { says: { exitAfterSeconds: '1', exitCode: '1' } })
  await create(cluster, 'leaves', { says: { stopSeconds: '30' }, spec: { terminationGracePeriodSeconds: 40 } })
  await cluster.clock.advance(60_000)
  const looped = mainOf(await podOf(cluster, 'loops'))
  const died = mainOf(await podOf(cluster, 'dies'))
  await end()
  await cluster.client.of(pods).delete({ namespace, name: 'leaves' })
  const endAgain = startProcess(cluster, 2)
  await cluster.clock.advance(20_000)
  assert.ok((await podOf(cluster, 'leaves')).metadata.deletionTimestamp, 'its container stops for thirty seconds')
  const ended = await podOf(cluster, 'ended')
  assert.deepEqual([ended.status?.phase, mainOf(ended)?.state?.terminated?.exitCode], ['Failed', 5])
  const again = mainOf(await podOf(cluster, 'loops'))
  assert.ok((again?.restartCount ?? 0) > (looped?.restartCount ?? 0), 'a kubelet that starts again knows no back-off')
  assert.equal((await podOf(cluster, 'falls')).status?.conditions?.find(({ type }) => type === 'Ready')?.status, 'True')
  assert.equal(mainOf(await podOf(cluster, 'dies'))?.containerID, died?.containerID)
  await cluster.clock.advance(300_000)
  const ends = mainOf(await podOf(cluster, 'ends'))?.state?.terminated
  assert.equal(ends?.exitCode, 4)
  assert.equal(Date.parse(ends?.finishedAt ?? '') - Date.parse(ends?.startedAt ?? ''), 200_000)
  assert.ok(Date.parse(ends?.startedAt ?? '') - startMs < 10_000)
  assert.equal((await podOf(cluster, 'falls')).status?.conditions?.find(({ type }) => type === 'Ready')?.status, 'False')
  const dead = mainOf(await podOf(cluster, 'dies'))
  assert.equal(dead?.lastState?.terminated?.exitCode !== undefined && (dead?.restartCount ?? 0) > 0, true)
  const left = await cluster.client.of(pods).list({ namespace })
  assert.ok(!left.items.some(({ metadata }) => metadata.name === 'leaves'))
  await endAgain()
})
