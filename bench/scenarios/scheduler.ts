/** Pods through the control plane: created, decided, bound, their Scheduled events recorded. API server and scheduler in one process, memory store. */
import type { PodShape } from '../cluster/bareCluster.ts'
import { inOwnProcess } from '../cluster/ownProcess.ts'
import type { Measurement, Scenario } from '../scenario.ts'
import { rounded } from '../tools/statistics.ts'

interface Load {
  readonly what: string
  readonly nodes: number
  readonly count: number
  readonly shape: PodShape
  readonly atLeast?: number
}

const loads: readonly Load[] = [
  { what: '5,000 plain pods, 100 nodes', nodes: 100, count: 5000, shape: 'plain' },
  { what: '5,000 plain pods, 1,000 nodes', nodes: 1000, count: 5000, shape: 'plain' },
  { what: '10,000 plain pods, 5,000 nodes', nodes: 5000, count: 10_000, shape: 'plain', atLeast: 3000 },
  { what: '4,000 pods spread over zones, 5,000 nodes', nodes: 5000, count: 4000, shape: 'spread', atLeast: 1000 },
  { what: '3,000 pods apart from each other, 5,000 nodes', nodes: 5000, count: 3000, shape: 'apart', atLeast: 1000 },
]

/** The greatest cost of a pod over the smallest, for plain pods. */
const flatWithin = 3

export const scheduler: Scenario = {
  name: 'scheduler',
  about: 'pods created, bound, and their events recorded, in one process',
  run: async ({ progress, signal }) => {
    const measured: Measurement[] = []
    const costs: number[] = []
    for (const { what, nodes, count, shape, atLeast } of loads) {
      progress(what)
      const { ms, cpuMicros, rssMB } = await inOwnProcess('schedule', { nodes, count, shape }, signal)
      const cost = cpuMicros / count
      if (shape === 'plain') costs.push(cost)
      const note = `CPU ${rounded(cost)} µs a pod, ${rounded(rssMB)} MB`
      measured.push({ what, unit: 'pods/s', values: [(count / ms) * 1000], target: atLeast === undefined ? undefined : { atLeast }, note })
    }
    const ratio = Math.max(...costs) / Math.min(...costs)
    return [...measured, { what: 'CPU a plain pod, dearest to cheapest number of nodes', unit: 'x', values: [ratio], target: { atMost: flatWithin } }]
  },
}
