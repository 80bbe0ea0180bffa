/** Cost of an idle cluster: memory and CPU of the one server process (store, API, controllers, scheduler, one simulated node). */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Scenario } from '../scenario.ts'
import { withCluster } from '../tools/localCluster.ts'
import { usageOf } from '../tools/machine.ts'

const settleMs = 5_000
const windowMs = 20_000

export const idle: Scenario = {
  name: 'idle',
  about: 'the server process, left alone',
  run: ({ dir, signal }) =>
    withCluster(dir, 'idle', ['--runtime', 'simulated', '--nodes', '1'], async ({ serverPid }) => {
      await sleep(settleMs, undefined, { signal })
      const before = usageOf(serverPid)
      await sleep(windowMs, undefined, { signal })
      const after = usageOf(serverPid)
      const cpuPercent = ((after.cpuSeconds - before.cpuSeconds) / (windowMs / 1000)) * 100
      return [
        { what: 'resident memory', unit: 'MB', values: [after.rssMB], target: { atMost: 150 } },
        { what: 'CPU of one core', unit: '%', values: [cpuPercent], target: { atMost: 1 } },
      ]
    }),
}
