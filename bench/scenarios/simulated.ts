/** The whole control plane at work: pods created, scheduled, and run by the kubelets of simulated nodes. */
import { prepareNamespace } from '../api/apiBench.ts'
import type { Measurement, Scenario } from '../scenario.ts'
import { createLoadClient } from '../tools/load.ts'
import { withCluster } from '../tools/localCluster.ts'
import { usageOf } from '../tools/machine.ts'
import { createAndAwait, type RunningPods } from '../tools/simulatedPods.ts'
import { median, percentile, rounded } from '../tools/statistics.ts'

const nodes = 100
const pods = 5000
const deadlineMs = 120_000
const namespace = 'simulated'

export const simulated: Scenario = {
  name: 'simulated',
  about: `${pods} pods on ${nodes} simulated nodes, creation to Running`,
  run: ({ dir, signal, progress }) =>
    withCluster(dir, 'simulated', ['--runtime', 'simulated', '--simulated-nodes', String(nodes)], async ({ address, serverPid, upMs }) => {
      progress(`${nodes} nodes are up`)
      const client = await createLoadClient(address)
      try {
        await prepareNamespace(client, namespace)
        const before = usageOf(serverPid)
        const measured = measurementOf(await createAndAwait(client, { namespace, pods, deadlineMs }, signal))
        const after = usageOf(serverPid)
        const cpuMicros = ((after.cpuSeconds - before.cpuSeconds) * 1e6) / pods
        return [
          { what: `"skiff up" with ${nodes} simulated nodes`, unit: 'ms', values: [upMs] },
          { ...measured, note: `${measured.note}, server CPU ${rounded(cpuMicros)} µs per pod, ${rounded(after.rssMB)} MB at the end` },
        ]
      } finally {
        client.close()
      }
    }),
}

function measurementOf({ seconds, delays }: RunningPods): Measurement {
  return {
    what: `${pods} pods, the first creation to the last Running`,
    unit: 's',
    values: [seconds],
    target: { atMost: 5 },
    note: `${rounded(pods / seconds)} pods/s, creation to Running p50 ${rounded(median(delays))} ms, p99 ${rounded(percentile(delays, 0.99))} ms`,
  }
}
