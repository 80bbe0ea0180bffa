/**
 * What a scheduler or autoscaler author does with `skiff simulate load`: a second scheduler runs the plugin and the configuration of docs/scheduler.md, and a load
 * with autoscalers is driven against many simulated nodes. Virtual time, so that the minutes in which an autoscaler acts take none.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { readLoadPlan } from '#cli/load/loadPlan'
import type { LoadReport } from '#cli/load/loadReport'
import { runLoad } from '#cli/load/runLoad'
import { deployments, horizontalPodAutoscalers, pods } from '#client/builtIn'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { eventSeriesRecorders } from '#client/eventSeriesRecorder'
import { decodeSchedulerConfiguration, schedulerConfigOf } from '#scheduler/config/configuration'
import { loadPluginFiles } from '#scheduler/pluginFiles'
import { createScheduler, defaultSchedulerConfig, type SchedulerConfig } from '#scheduler/scheduler'
import { startCluster, type TestCluster } from '#testing/cluster'

const nodeCount = 30
const isQuiet = (number: number) => number % 3 === 0
const nodes = Array.from({ length: nodeCount }, (_, number) => ({ name: `n${number}`, labels: { quiet: isQuiet(number) ? 'yes' : 'no' } }))
/** Each pod uses 90 % of its request, so an autoscaler that aims at 60 % adds pods until it may not. */
const load = `
namespaces: 2
deployments:
  - name: quiet
    count: 2
    replicas: 20
    template: { spec: { schedulerName: quiet, containers: [{ name: main, image: i:1, resources: { requests: { cpu: 100m } } }] } }
  - { name: other, count: 1, replicas: 20 }
  - name: scaled
    count: 2
    replicas: 2
    autoscaler: { min: 2, max: 12, cpuPercent: 60 }
    template:
      metadata: { annotations: { skiff.dev/simulated-cpu-milli: '90' } }
      spec: { schedulerName: quiet, containers: [{ name: main, image: i:1, resources: { requests: { cpu: 100m } } }] }
churn: { for: 150s, deletePod: 20/m }
`

/** The plugin and the configuration that the page shows. */
async function documentedConfig(): Promise<Partial<SchedulerConfig>> {
  const page = await fs.readFile(path.resolve(import.meta.dirname, '../../../docs/scheduler.md'), 'utf8')
  const [, plugin] = /```js\n(\/\/ quiet\.js[\s\S]*?)```/.exec(page) ?? []
  const [, configuration] = /```yaml\n(apiVersion: kubescheduler[\s\S]*?)```/.exec(page) ?? []
  assert.ok(plugin && configuration, 'docs/scheduler.md has a plugin and a configuration')
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'load-plugin-'))
  try {
    await fs.writeFile(path.join(folder, 'package.json'), '{ "type": "module" }')
    await fs.writeFile(path.join(folder, 'quiet.js'), plugin)
    const decoded = decodeSchedulerConfiguration(configuration)
    return schedulerConfigOf(decoded, await loadPluginFiles(decoded.pluginFiles, folder))
  } finally {
    await fs.rm(folder, { recursive: true })
  }
}

function startSecondScheduler(cluster: TestCluster, config: Partial<SchedulerConfig>, signal: AbortSignal): Promise<unknown> {
  const { clock, log } = cluster
  const client = cluster.clientAs({ name: 'system:kube-scheduler', groups: ['system:authenticated'] })
  const deps = { client, clock, log, metrics: noMetrics, random: seededRandom(3) }
  const informers = createSharedInformerFactory(client, { ...deps, minWatchSeconds: 86_400 })
  const events = eventSeriesRecorders(deps, 'second', signal)
  return Promise.all([createScheduler({ ...deps, informers, events }, { ...defaultSchedulerConfig, ...config }).run(signal), informers.run(signal)])
}

async function driveLoad(cluster: TestCluster): Promise<LoadReport> {
  const { client, clock, log } = cluster
  const progress = { step: <T>(_: string, work: (report: (state: string) => void) => Promise<T>) => work(() => {}), note: () => {} }
  let report: LoadReport | undefined
  const running = runLoad({ client, clock, log, progress }, readLoadPlan('load.yaml', load), true, new AbortController().signal).then((it) => {
    report = it
  })
  const done = await cluster.until(async () => report, 60 * 60_000)
  await running
  return done
}

const nodeNumber = ({ spec }: Frozen<Pod>) => Number(spec.nodeName?.slice(1))

test('ARC-13 SCH-15 AUT-01 a load on many simulated nodes exercises the plugin of a second scheduler, and autoscalers', async () => {
  const config = await documentedConfig()
  await using cluster = await startCluster({ nodes, resourceMetrics: true })
  const stop = new AbortController()
  const second = startSecondScheduler(cluster, config, stop.signal)
  const report = await driveLoad(cluster)
  assert.deepEqual([report.fill.pods, report.fill.ready, report.failures], [2 * 20 + 20 + 2 * 2, 2 * 20 + 20 + 2 * 2, []])
  assert.ok((report.churn?.operations.deletePod ?? 0) >= 45, JSON.stringify(report.churn?.operations))
  assert.equal(report.churn?.ready, 2 * 20 + 20 + 2 * 12, 'the autoscalers have raised their Deployments to the most pods')
  const { items } = await cluster.client.of(pods).list({ labelSelector: 'skiff.dev/load=load' })
  const ofSecond = items.filter(({ spec }) => spec.schedulerName === 'quiet')
  const misplaced = ofSecond.filter((pod) => !isQuiet(nodeNumber(pod))).map(keyOf)
  assert.deepEqual(misplaced, [], 'pods of the second scheduler are on quiet nodes only')
  assert.ok(
    items.some((pod) => pod.spec.schedulerName !== 'quiet' && !isQuiet(nodeNumber(pod))),
    'other pods are on the others too',
  )
  // A status follows at the next sync of its autoscaler.
  await cluster.until(async () => {
    const { items } = await cluster.client.of(horizontalPodAutoscalers).list()
    return items.length === 2 && items.every(({ status }) => status?.currentReplicas === 12 && status.desiredReplicas === 12)
  })
  const sizes = (await cluster.client.of(deployments).list()).items
    .filter(({ metadata }) => metadata.name?.startsWith('scaled'))
    .map(({ spec }) => spec.replicas)
  assert.deepEqual(sizes, [12, 12])
  stop.abort(new Error('the scheduler is stopped'))
  await second
})
