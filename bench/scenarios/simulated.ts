/** The whole control plane at work: pods created, scheduled, and run by the kubelets of simulated nodes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { prepareNamespace } from '../api/apiBench.ts'
import type { Measurement, Scenario } from '../scenario.ts'
import { createLoadClient, type LoadClient } from '../tools/load.ts'
import { withCluster } from '../tools/localCluster.ts'
import { usageOf } from '../tools/machine.ts'
import { encoded, pod } from '../tools/objects.ts'
import { median, percentile, rounded } from '../tools/statistics.ts'
import { watchLines } from '../tools/watchLines.ts'

const nodes = 100
const pods = 5000
const inFlight = 64
const deadlineMs = 120_000
const namespace = 'simulated'
const path = `/api/v1/namespaces/${namespace}/pods`

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
        const measured = await createAndAwait(client, signal)
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

async function createAndAwait(client: LoadClient, signal: AbortSignal): Promise<Measurement> {
  const createdAt: number[] = []
  const runningAt = new Map<number, number>()
  await watchLines(await client.connect(), `${path}?watch=true&resourceVersion=0`, (line) => {
    if (!line.includes('"phase":"Running"')) return
    const index = Number(/"name":"p-(\d+)"/.exec(line)?.[1])
    if (!runningAt.has(index)) runningAt.set(index, performance.now())
  })
  const started = performance.now()
  await client.loop(pods, inFlight, (index) => {
    createdAt[index] = performance.now()
    return { method: 'POST', path, body: encoded(pod(namespace, `p-${index}`)), contentType: 'application/json' }
  })
  while (runningAt.size < pods) {
    if (performance.now() - started > deadlineMs) throw new Error(`only ${runningAt.size} of ${pods} pods run`)
    await sleep(10, undefined, { signal })
  }
  const seconds = (Math.max(...runningAt.values()) - started) / 1000
  const delays = [...runningAt].map(([index, at]) => at - (createdAt[index] ?? at))
  return {
    what: `${pods} pods, the first creation to the last Running`,
    unit: 's',
    values: [seconds],
    target: { atMost: 5 },
    note: `${rounded(pods / seconds)} pods/s, creation to Running p50 ${rounded(median(delays))} ms, p99 ${rounded(percentile(delays, 0.99))} ms`,
  }
}
