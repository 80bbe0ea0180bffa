/** A cluster in this process, from the built package, with nodes that have no kubelet, so that only the control plane is measured. */
import type { Node, Pod } from '#api/gen/types/core.v1'
import type { KubeObject } from '#api/machinery/meta'
import { nodes, serviceAccounts } from '#client/builtIn'
import type { Resource } from '#client/client'
import type { WatchEvent } from '#client/transport'
import type { TestCluster } from '#testing/cluster'

export type PodShape = 'plain' | 'spread' | 'apart'

const inFlight = 64
const built = new URL('../../dist/testing.mjs', import.meta.url).href

/** @param controllers as --controllers; false: none */
export async function startBareCluster(nodeCount: number, controllers: readonly string[] | false): Promise<TestCluster> {
  const { startCluster } = (await import(built)) as typeof import('#testing/package')
  const cluster = await startCluster({ clock: 'real', nodes: 0, controllers })
  await inParallel(nodeCount, async (index) => {
    await cluster.client.of(nodes).create(nodeOf(index))
    // Admission has marked it as not ready, which no kubelet takes back.
    await cluster.client.of(nodes).patch({ name: `node-${index}` }, 'merge', { spec: { taints: null } })
  })
  if (!controllers)
    await cluster.client.of(serviceAccounts).create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'default' } })
  return cluster
}

/** Does `task(0)` … `task(count - 1)`, at most so many at a time. Returns what each made. */
export async function inParallel<T>(count: number, task: (index: number) => Promise<T>, atOnce = inFlight): Promise<T[]> {
  const made = new Array<T>(count)
  let next = 0
  const work = async () => {
    while (next < count) {
      const index = next++
      made[index] = await task(index)
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, work))
  return made
}

/** Follows a resource from now on. Returns what ends the watch. */
export async function follow<T extends KubeObject>(
  cluster: TestCluster,
  resource: Resource<T>,
  seen: (event: WatchEvent<T>) => void,
): Promise<() => Promise<void>> {
  const stop = new AbortController()
  const { metadata } = await cluster.client.of(resource).list({ limit: 1 })
  const watch = cluster.client.of(resource).watch({ signal: stop.signal, resourceVersion: metadata.resourceVersion ?? '' })
  const following = (async () => {
    for await (const batch of watch) for (const event of batch) seen(event as WatchEvent<T>)
  })().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error
  })
  return async () => {
    stop.abort()
    await following
  }
}

function nodeOf(index: number): Node {
  const now = `${new Date().toISOString().slice(0, 19)}Z`
  const name = `node-${index}`
  const resources = { cpu: '32', memory: '256Gi', pods: '110' }
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '', lastHeartbeatTime: now, lastTransitionTime: now }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/zone': `zone-${index % 3}` } },
    spec: {},
    status: { capacity: resources, allocatable: resources, conditions: [ready] },
  }
}

const labelSelector = { matchLabels: { app: 'web' } }
const specs: Readonly<Record<PodShape, Partial<Pod['spec']>>> = {
  plain: {},
  spread: { topologySpreadConstraints: [{ maxSkew: 5, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'DoNotSchedule', labelSelector }] },
  apart: { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname', labelSelector }] } } },
}

/** @param nodeName where it is; absent: the scheduler decides */
export function podOf(name: string, shape: PodShape, nodeName?: string): Pod {
  const container = { name: 'c', image: 'registry.k8s.io/pause:3.9', resources: { requests: { cpu: '100m', memory: '128Mi' } } }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { app: 'web' } },
    spec: { ...specs[shape], ...(nodeName === undefined ? {} : { nodeName }), containers: [container] },
    status: {},
  }
}
