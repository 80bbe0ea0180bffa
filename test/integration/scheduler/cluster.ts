/** The real API server and the real scheduler, for scheduler tests; nodes are objects only, nothing runs on them. */
import { afterEach, beforeEach } from 'node:test'
import type { Node, Pod, PodSpec } from '#api/gen/types/core.v1'
import { podCondition } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'
import { noLog } from '#base/log'
import { type Metrics, noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { nodes, pods } from '#client/builtIn'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { Client } from '#client/client'
import { eventSeriesRecorders } from '#client/eventSeriesRecorder'
import { createScheduler, defaultSchedulerConfig, type SchedulerConfig } from '#scheduler/scheduler'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'

const tools = { clock: realClock, random: seededRandom(5), log: noLog, metrics: noMetrics }

/** Back-off is short, so that tests need not wait for it. */
const config = { ...defaultSchedulerConfig, podInitialBackoffMs: 20, podMaxBackoffMs: 40 }

export interface RunningScheduler {
  /** Resolves when it has stopped; the API server stays. */
  stop(): Promise<void>
}

export function startScheduler(client: Client, changes: Partial<SchedulerConfig> = {}, metrics: Metrics = noMetrics): RunningScheduler {
  const stop = new AbortController()
  const informers = createSharedInformerFactory(client, tools)
  const events = eventSeriesRecorders({ ...tools, client }, 'host', stop.signal)
  const scheduler = createScheduler({ ...tools, metrics, client, informers, events }, { ...config, ...changes })
  const running = [scheduler.run(stop.signal), informers.run(stop.signal)]
  return {
    stop: async () => {
      stop.abort(new Error('the scheduler is stopped'))
      await Promise.all(running)
    },
  }
}

/** A separate API server for each test of a file; it is closed afterwards, with the scheduler that the test started. */
export function perTest() {
  const own = {
    api: undefined as unknown as TestApiServer,
    scheduler: undefined as RunningScheduler | undefined,
    create: (pod: Pod) => own.api.client.of(pods).create(pod),
    until: (name: string, right: (pod: Frozen<Pod>) => boolean) => untilPods(own.api.client, [name], right).then((found) => found.get(name) as Frozen<Pod>),
  }
  beforeEach(async () => {
    own.api = await startTestApiServer()
  })
  afterEach(async () => {
    await own.scheduler?.stop()
    own.scheduler = undefined
    await own.api.close()
  })
  return own
}

/** The pod's condition about its placement. */
export function scheduled(pod: Frozen<Pod>) {
  return podCondition(pod, 'PodScheduled')
}

export function newNode(name: string, allocatable: Record<string, string> = { cpu: '4', memory: '8Gi', pods: '110' }, spec: Node['spec'] = {}): Node {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec, status: { capacity: allocatable, allocatable } }
}

export async function addNode(client: Client, node: Node): Promise<void> {
  await client.of(nodes).create(node)
}

export function newPod(name: string, cpu = '100m', spec: Partial<PodSpec> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { containers: [{ name: 'main', image: 'busybox', resources: { requests: { cpu } } }], ...spec },
    status: {},
  }
}

/** Follows a watch until every pod named is as wanted; the watch begins with what is there. */
export async function untilPods(client: Client, names: readonly string[], right: (pod: Frozen<Pod>) => boolean): Promise<Map<string, Frozen<Pod>>> {
  const stop = AbortSignal.timeout(60_000)
  const found = new Map<string, Frozen<Pod>>()
  const missing = new Set(names)
  const list = await client.of(pods).list({ namespace: 'default' })
  const see = (pod: Frozen<Pod>) => {
    const { name = '' } = pod.metadata
    if (!missing.has(name) || !right(pod)) return
    missing.delete(name)
    found.set(name, pod)
  }
  list.items.forEach(see)
  if (missing.size === 0) return found
  for await (const batch of client.of(pods).watch({ namespace: 'default', resourceVersion: list.metadata.resourceVersion, signal: stop })) {
    for (const event of batch) if (event.type === 'ADDED' || event.type === 'MODIFIED') see(event.object)
    if (missing.size === 0) return found
  }
  throw new Error(`pods did not become as wanted: ${[...missing].slice(0, 5).join(', ')}`)
}

export const isBound = (pod: Frozen<Pod>) => Boolean(pod.spec.nodeName)

export const isUnschedulable = (pod: Frozen<Pod>) => pod.status?.conditions?.some(({ type, status }) => type === 'PodScheduled' && status === 'False') ?? false
