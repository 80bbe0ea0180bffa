/** A Deployment that grows from 1 replica to 1,000: the way through two controllers and the scheduler. */
import { inOwnProcess } from '../cluster/ownProcess.ts'
import type { Scenario } from '../scenario.ts'
import { rounded } from '../tools/statistics.ts'

const nodes = 100
const replicas = 1000
const repeats = 3

export const deployment: Scenario = {
  name: 'deployment',
  about: `a deployment from 1 to ${replicas} replicas, ${nodes} nodes that nobody runs, all controllers`,
  run: async ({ progress, signal }) => {
    const runs = []
    for (let repeat = 1; repeat <= repeats; repeat++) {
      progress(`repeat ${repeat} of ${repeats}`)
      runs.push(await inOwnProcess('scaleUp', { nodes, replicas }, signal))
    }
    const cpu = Math.min(...runs.map(({ cpuMicros }) => cpuMicros)) / replicas
    return [
      { what: 'until all pods exist', unit: 'ms', values: runs.map(({ existMs }) => existMs), target: { atMost: 300 } },
      {
        what: 'until all pods are bound',
        unit: 'ms',
        values: runs.map(({ boundMs }) => boundMs),
        target: { atMost: 600 },
        note: `CPU ${rounded(cpu)} µs a pod`,
      },
    ]
  },
}
