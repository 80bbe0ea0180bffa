/** What can be measured of a whole cluster in one process; ./child.ts runs one of these. */
import { setTimeout as sleep } from 'node:timers/promises'
import { cronJobs, deployments, events, pods } from '#client/builtIn'
import { follow, inParallel, type PodShape, podOf, startBareCluster } from './bareCluster.ts'

export interface Usage {
  readonly cpuMicros: number
  readonly rssMB: number
}

/** Before each measurement this many pods show the compiler what is to come. */
const warmUpPods = 1000
const pollMs = 2

export const tasks = {
  /** From the first creation until all pods are bound and their Scheduled events can be read. No controllers, as in upstream's scheduler_perf. */
  async schedule({
    nodes,
    count,
    shape,
  }: {
    readonly nodes: number
    readonly count: number
    readonly shape: PodShape
  }): Promise<Usage & { readonly ms: number }> {
    const cluster = await startBareCluster(nodes, false)
    let bound = 0
    let recorded = 0
    await follow(cluster, pods, ({ type, object }) => {
      if (type === 'MODIFIED' && object.spec.nodeName) bound++
    })
    await follow(cluster, events, ({ type, object }) => {
      if (type === 'ADDED' && object.reason === 'Scheduled') recorded++
    })
    const round = async (prefix: string, wanted: number) => {
      bound = 0
      recorded = 0
      const before = process.cpuUsage()
      const started = performance.now()
      await inParallel(wanted, (index) => cluster.client.of(pods).create(podOf(`${prefix}-${index}`, shape)))
      while (bound < wanted || recorded < wanted) await sleep(pollMs)
      return { ms: performance.now() - started, ...usageSince(before) }
    }
    await round('warm-up', Math.min(warmUpPods, shape === 'apart' ? Math.floor(nodes / 5) : warmUpPods))
    return round('pod', count)
  },

  /** A Deployment from one replica to many, with all controllers: until all pods exist, and until all are bound. */
  async scaleUp({
    nodes,
    replicas,
  }: {
    readonly nodes: number
    readonly replicas: number
  }): Promise<Usage & { readonly existMs: number; readonly boundMs: number }> {
    const cluster = await startBareCluster(nodes, ['*', '-node-lifecycle-controller'])
    const there = new Set<string>()
    const bound = new Set<string>()
    let existMs = 0
    let started = 0
    await follow(cluster, pods, ({ object: { metadata, spec } }) => {
      if (!metadata.name?.startsWith('web-')) return
      there.add(metadata.name)
      if (spec.nodeName) bound.add(metadata.name)
      if (there.size === replicas && existMs === 0) existMs = performance.now() - started
    })
    // What comes first warms up what comes after, as in a cluster that lives.
    await inParallel(warmUpPods, (index) => cluster.client.of(pods).create(podOf(`warm-up-${index}`, 'plain')))
    await cluster.client.of(deployments).create(deploymentOf('web'))
    while (bound.size < 1) await sleep(pollMs)
    const before = process.cpuUsage()
    started = performance.now()
    await cluster.client.of(deployments).patch({ namespace: 'default', name: 'web' }, 'merge', { spec: { replicas } })
    while (bound.size < replicas) await sleep(pollMs)
    return { existMs, boundMs: performance.now() - started, ...usageSince(before) }
  },

  /** Nodes and the pods on them, as the API server, the scheduler and the controllers keep them. */
  async hold({ nodes, count }: { readonly nodes: number; readonly count: number }): Promise<Usage> {
    const before = process.cpuUsage()
    const cluster = await startBareCluster(nodes, ['*', '-node-lifecycle-controller'])
    await inParallel(count, (index) => cluster.client.of(pods).create(podOf(`pod-${index}`, 'plain', `node-${index % nodes}`)))
    await sleep(settleMs)
    return usageSince(before)
  },

  /** Idle simulated nodes, each with its kubelet. */
  async idle({ nodes, seconds }: { readonly nodes: number; readonly seconds: number }): Promise<Usage & { readonly cpuPercent: number }> {
    const { startCluster } = await builtTesting()
    await startCluster({ clock: 'real', nodes })
    await sleep(settleMs)
    const before = process.cpuUsage()
    await sleep(seconds * 1000)
    const usage = usageSince(before)
    return { ...usage, cpuPercent: usage.cpuMicros / (seconds * 1e4) }
  },

  /** Hours of a CronJob whose pods run for a second, on a cluster that stands still but for `advance`. */
  async virtual({
    schedule,
    hours,
  }: {
    readonly schedule: string
    readonly hours: number
  }): Promise<Usage & { readonly ms: number; readonly changes: number }> {
    const { startCluster } = await builtTesting()
    const { client, clock } = await startCluster()
    const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'example.com/task:1' }] } }
    const spec = { schedule, jobTemplate: { spec: { template } } }
    const { metadata } = await client.of(cronJobs).create({ metadata: { namespace: 'default', name: 'tick' }, spec })
    const before = process.cpuUsage()
    const started = performance.now()
    await clock.advance(hours * hourMs)
    const ms = performance.now() - started
    const usage = usageSince(before)
    const list = await client.of(cronJobs).list({ namespace: 'default' })
    return { ...usage, ms, changes: Number(list.metadata.resourceVersion) - Number(metadata.resourceVersion) }
  },
}

export type Tasks = typeof tasks

const settleMs = 5_000
const hourMs = 3_600_000

/** What users import. */
const builtTesting = () => import(new URL('../../dist/testing.mjs', import.meta.url).href) as Promise<typeof import('#testing/package')>

function usageSince(before: NodeJS.CpuUsage): Usage {
  const { user, system } = process.cpuUsage(before)
  return { cpuMicros: user + system, rssMB: process.memoryUsage().rss / 1e6 }
}

function deploymentOf(name: string) {
  const labels = { app: name }
  const container = { name: 'c', image: 'registry.k8s.io/pause:3.9', resources: { requests: { cpu: '10m' } } }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [container] } } },
  }
}
