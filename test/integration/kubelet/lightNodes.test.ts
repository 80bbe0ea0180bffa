/**
 * A light simulated node, which shares its watches and events and creates its kubelet with the first pod, against a node with a whole kubelet of its own:
 * 200 scripted pods on each must have the same history.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, PodSpec } from '#api/gen/types/core.v1'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { nodes, pods } from '#client/builtIn'
import { createEventWriter } from '#client/eventRecorder'
import type { KubeletDeps } from '#kubelet/core/context'
import { createKubelet } from '#kubelet/kubelet'
import { simulatedAnnotations } from '#kubelet/runtime/simulated/annotations'
import { simulatedMachine } from '#kubelet/runtime/simulated/machine'
import { createSimulatedRuntime } from '#kubelet/runtime/simulated/simulatedRuntime'
import { createSharedSources } from '#kubelet/sources/sharedSources'
import { standBy } from '#kubelet/standBy'
import { startCluster, type TestCluster } from '#testing/cluster'
import type { Change } from '#testing/history'

type Says = Partial<Record<keyof typeof simulatedAnnotations, string>>

interface Script {
  readonly says?: Says
  readonly spec?: Partial<PodSpec>
  /** Done with the pod so many seconds after its creation. */
  readonly later?: readonly { readonly afterSeconds: number; readonly act: (cluster: TestCluster, name: string) => Promise<unknown> }[]
}

const namespace = 'default'
const main = { name: 'main', image: 'example.com/app:1' }
const probe = { exec: { command: ['true'] }, periodSeconds: 5, failureThreshold: 2 }
const remove = (gracePeriodSeconds?: number) => (cluster: TestCluster, name: string) =>
  cluster.client.of(pods).delete({ namespace, name }, gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds })
const label = (cluster: TestCluster, name: string) => cluster.client.of(pods).patch({ namespace, name }, 'merge', { metadata: { labels: { changed: 'yes' } } })
/** What happens to a pod, for each pod in turn. */
const scripts: readonly Script[] = [
  {},
  { spec: { restartPolicy: 'Never' } },
  { says: { exitAfterSeconds: '3', exitCode: '3' }, spec: { restartPolicy: 'Never' } },
  { says: { exitAfterSeconds: '4', exitCode: '1' } },
  { says: { exitAfterSeconds: '4', exitCode: '1', exitTimes: '2' }, spec: { restartPolicy: 'OnFailure' } },
  { says: { exitAfterSeconds: '5', exitReason: 'OOMKilled' } },
  { says: { pullError: 'no such image' } },
  { says: { pullError: 'registry is away', pullFailures: '2' } },
  { says: { startError: 'no such file' } },
  { says: { startSeconds: '20', pullSeconds: '10' } },
  { says: { readiness: 'fail 20s, pass 20s, fail' }, spec: { containers: [{ ...main, readinessProbe: probe }] } },
  { says: { liveness: 'pass 20s, fail' }, spec: { containers: [{ ...main, livenessProbe: probe }] } },
  { says: { startup: 'fail 12s, pass' }, spec: { containers: [{ ...main, startupProbe: { ...probe, failureThreshold: 5 }, readinessProbe: probe }] } },
  {
    spec: {
      initContainers: [
        { name: 'first', image: 'i:1' },
        { name: 'second', image: 'i:2' },
      ],
    },
  },
  {
    spec: {
      initContainers: [
        { name: 'side', image: 's:1', restartPolicy: 'Always' },
        { name: 'first', image: 'i:1' },
      ],
    },
  },
  { spec: { containers: [main, { name: 'other', image: 'o:1' }] }, says: { exitAfterSeconds: '6' } },
  { spec: { activeDeadlineSeconds: 15 } },
  { spec: { containers: [{ ...main, resources: { requests: { cpu: '1000' } } }] } },
  { later: [{ afterSeconds: 10, act: remove() }] },
  { says: { stopSeconds: '60' }, spec: { terminationGracePeriodSeconds: 20 }, later: [{ afterSeconds: 10, act: remove() }] },
  {
    says: { stopSeconds: '60' },
    later: [
      { afterSeconds: 8, act: remove() },
      { afterSeconds: 12, act: remove(2) },
    ],
  },
  { later: [{ afterSeconds: 9, act: remove(0) }] },
  { later: [{ afterSeconds: 0.3, act: remove() }] },
  { later: [{ afterSeconds: 10, act: label }] },
  { spec: { readinessGates: [{ conditionType: 'example.com/ready' }] } },
]
const podCount = 200
const spec = (script: Script, nodeName: string): Pod['spec'] =>
  ({ nodeName, terminationGracePeriodSeconds: 30, containers: [main], ...script.spec }) as Pod['spec']

const kinds = ['whole', 'light'] as const
type Kind = (typeof kinds)[number]

async function startKubelets(cluster: TestCluster, signal: AbortSignal): Promise<Promise<void>[]> {
  const { clock, log } = cluster
  const tools = { clock, log, random: seededRandom(5) }
  const sources = createSharedSources({ ...tools, client: cluster.client }, signal)
  return kinds.map((kind) => {
    const nodeName = `node-${kind}`
    const client = cluster.clientAs({ name: `system:node:${nodeName}`, groups: ['system:nodes', 'system:authenticated'] })
    const random = seededRandom(7)
    const deps: KubeletDeps = {
      ...{ client, clock, log, metrics: noMetrics, random, machine: simulatedMachine('machine') },
      runtime: createSimulatedRuntime({ clock, random: seededRandom(9), podCidr: '10.244.0.0/16' }),
      eventWriter: createEventWriter(tools, 10_000, signal),
      ...(kind === 'light' ? { sources } : {}),
    }
    const config = { nodeName, nodeIPs: ['198.18.0.1'], maxPods: 500, relistPeriodMs: 0, syncFrequencyMs: 0 }
    return createKubelet(deps, config, kind === 'light' ? standBy : undefined).run(signal)
  })
}

/** Creates the pods one by one, and lets five minutes pass. */
async function play(cluster: TestCluster): Promise<void> {
  const { client, clock } = cluster
  const due: { readonly atMs: number; readonly act: (kind: Kind) => Promise<unknown> }[] = []
  const startMs = clock.now()
  for (let index = 0; index < podCount; index++) {
    const script = scripts[index % scripts.length] as Script
    const createMs = startMs + index * 250
    const nameOf = (kind: Kind) => `pod-${index}-${kind}`
    const says = Object.entries(script.says ?? {}).map(([key, value]) => [simulatedAnnotations[key as keyof Says], value])
    due.push({
      atMs: createMs,
      act: (kind) =>
        client.of(pods).create({ metadata: { namespace, name: nameOf(kind), annotations: Object.fromEntries(says) }, spec: spec(script, `node-${kind}`) }),
    })
    for (const { afterSeconds, act } of script.later ?? []) due.push({ atMs: createMs + afterSeconds * 1000, act: (kind) => act(cluster, nameOf(kind)) })
  }
  for (const { atMs, act } of due.sort((a, b) => a.atMs - b.atMs)) {
    await clock.advance(Math.max(0, atMs - clock.now()))
    await Promise.all(kinds.map(act))
  }
  await clock.advance(300_000)
}

/** Ids differ from node to node: each is replaced by its number of appearance in the history of its object. */
function anonymous(): (text: string) => string {
  const seen = new Map<string, string>()
  const number = (what: string) => (id: string) => {
    const known = seen.get(id) ?? `${what}-${seen.size}`
    seen.set(id, known)
    return known
  }
  return (text) =>
    text
      .replace(/whole|light/g, 'NODE')
      .replace(/[0-9a-f]{64}/g, number('container'))
      .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, number('uid'))
      .replace(/"resourceVersion":"\d+"/g, '"resourceVersion":"R"')
      .replace(/"name":"([^"]*)\.[0-9a-f]{14,16}"/g, '"name":"$1.EVENT"')
}

/** Everything that was written about each object of that node, in order. */
function historiesOf(changes: readonly Change[], kind: Kind): Map<string, string[]> {
  const found = new Map<string, string[]>()
  const writers = new Map<string, (text: string) => string>()
  for (const { key, value, timeMs, type } of changes) {
    if (!key.includes(kind)) continue
    const about = key.startsWith('/registry/events/')
      ? `events of ${key
          .split('/')
          .at(-1)
          ?.replace(/\.[0-9a-f]*$/, '')}`
      : key
    const name = about.replace(kind, 'NODE')
    const write = writers.get(name) ?? anonymous()
    writers.set(name, write)
    found.set(name, [...(found.get(name) ?? []), write(`${timeMs} ${type} ${value}`)])
  }
  return found
}

test('ARC-13 KUB-26 the history of 200 scripted pods, their events, node and lease is the same on a light node and under a whole kubelet', async () => {
  const apiServerArgs = ['--disable-admission-plugins=ServiceAccount']
  await using cluster = await startCluster({ nodes: 0, controllers: false, scheduler: false, recordHistory: true, apiServerArgs })
  const stop = new AbortController()
  const running = await startKubelets(cluster, stop.signal)
  await cluster.until(async () => (await cluster.client.of(nodes).list()).items.length === kinds.length)
  await cluster.clock.advance(60_000)
  await play(cluster)
  const [whole, light] = kinds.map((kind) => historiesOf(cluster.history(), kind)) as [Map<string, string[]>, Map<string, string[]>]
  assert.deepEqual([...light.keys()].sort(), [...whole.keys()].sort())
  for (const [name, wanted] of whole) assert.deepEqual(light.get(name), wanted, name)
  const podHistories = [...whole].filter(([name]) => name.startsWith('/registry/pods/'))
  assert.equal(podHistories.length, podCount)
  assert.ok(podHistories.every(([, changes]) => changes.length > 1))
  stop.abort()
  void cluster.clock.advance(60_000)
  await Promise.all(running)
})
