/** What large clusters cost while nothing happens: the CPU of a thousand simulated kubelets, the memory of 5,000 nodes with 50,000 pods. */
import { inOwnProcess } from '../cluster/ownProcess.ts'
import type { Scenario } from '../scenario.ts'
import { rounded } from '../tools/statistics.ts'

export const nodes: Scenario = {
  name: 'nodes',
  about: 'large clusters in one process, left alone',
  run: async ({ progress, signal }) => {
    progress('1,000 simulated nodes')
    const idle = await inOwnProcess('idle', { nodes: 1000, seconds: 30 }, signal)
    progress('5,000 nodes with 50,000 pods')
    const held = await inOwnProcess('hold', { nodes: 5000, count: 50_000 }, signal)
    return [
      { what: '1,000 simulated nodes: CPU of one core', unit: '%', values: [idle.cpuPercent], target: { atMost: 10 }, note: `${rounded(idle.rssMB)} MB` },
      { what: '5,000 nodes, 50,000 pods: resident memory', unit: 'MB', values: [held.rssMB], target: { atMost: 2500 } },
    ]
  },
}
