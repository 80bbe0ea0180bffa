/** The scheduler's decision alone, without an API: one pod after another on the cache, each assumed on the node that was chosen for it. */
import type { Pod } from '#api/gen/types/core.v1'
import { podInfo } from '#scheduler/framework/podInfo'
import { nodeOf, podOf, schedulerFixture } from '#testing/schedulerFixture'
import type { Measurement, Scenario } from '../scenario.ts'
import { median, percentile } from '../tools/statistics.ts'

const warmUp = 500
const pods = 3000
const zones = 3

interface Shape {
  readonly what: string
  readonly nodes: number
  readonly pod: (name: string) => Pod
  readonly atMostUs?: number
}

const plain = (name: string) => podOf(name, {}, { cpu: '100m', memory: '128Mi' })
const spread = (name: string): Pod => {
  const constraint = {
    maxSkew: 5,
    topologyKey: 'topology.kubernetes.io/zone',
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: { matchLabels: { app: 'web' } },
  }
  return podOf(name, { topologySpreadConstraints: [constraint] }, { cpu: '100m', memory: '128Mi' }, { app: 'web' })
}
const apart = (name: string): Pod => {
  const term = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'web' } } }
  const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } }
  return podOf(name, { affinity }, { cpu: '100m', memory: '128Mi' }, { app: 'web' })
}

const shapes: readonly Shape[] = [
  { what: 'plain pods, 100 nodes', nodes: 100, pod: plain },
  { what: 'plain pods, 1,000 nodes', nodes: 1000, pod: plain },
  { what: 'plain pods, 5,000 nodes', nodes: 5000, pod: plain, atMostUs: 150 },
  { what: 'topology spread over zones, 5,000 nodes', nodes: 5000, pod: spread, atMostUs: 150 },
  { what: 'required anti-affinity by host, 5,000 nodes', nodes: 5000, pod: apart, atMostUs: 150 },
]

export const cycle: Scenario = {
  name: 'cycle',
  about: `one scheduling decision after another, ${pods} pods, without an API`,
  run: async ({ progress, signal }) => {
    const measured: Measurement[] = []
    for (const shape of shapes) {
      signal.throwIfAborted()
      progress(shape.what)
      measured.push(measure(shape))
    }
    return measured
  },
}

function measure({ what, nodes, pod, atMostUs }: Shape): Measurement {
  const fixture = schedulerFixture({
    nodes: Array.from({ length: nodes }, (_, i) =>
      nodeOf({ name: `node-${i}`, cpu: '32', memory: '256Gi', labels: { 'topology.kubernetes.io/zone': `zone-${i % zones}` } }),
    ),
  })
  const timesUs: number[] = []
  let cpuStart = process.cpuUsage()
  for (let i = 0; i < warmUp + pods; i++) {
    if (i === warmUp) cpuStart = process.cpuUsage()
    const one = pod(`pod-${i}`)
    const begun = performance.now()
    const result = fixture.schedule(one)
    if (!('placed' in result)) throw new Error(`pod ${i} found no node`)
    fixture.cache.assume(podInfo(one), result.placed.node.name)
    if (i >= warmUp) timesUs.push((performance.now() - begun) * 1000)
  }
  const cpu = process.cpuUsage(cpuStart)
  const cpuUs = Math.round((cpu.user + cpu.system) / pods)
  return {
    what,
    unit: 'µs a decision',
    values: [median(timesUs)],
    target: atMostUs === undefined ? undefined : { atMost: atMostUs },
    note: `99 % within ${Math.round(percentile(timesUs, 0.99))} µs, CPU ${cpuUs} µs`,
  }
}
