/** Throughput and latency of the API, over TLS and HTTP/2: every verb, lists of 1,000 and 10,000 pods, and the fan-out of watches. */
import { type ApiBench, namespace, prepareNamespace } from '../api/apiBench.ts'
import { measureLists } from '../api/lists.ts'
import { type Load, loads } from '../api/loads.ts'
import { measureWatches } from '../api/watches.ts'
import type { Measurement, Scenario } from '../scenario.ts'
import { createLoadClient, type LoadResult } from '../tools/load.ts'
import { withCluster } from '../tools/localCluster.ts'
import { usageOf } from '../tools/machine.ts'
import { median, percentile, rounded } from '../tools/statistics.ts'

const inFlight = 64
const repeats = 3

export const api: Scenario = {
  name: 'api',
  about: `every verb, ${inFlight} requests in flight; lists; watches`,
  run: (context) =>
    withCluster(context.dir, 'api', ['--runtime', 'simulated', '--nodes', '1'], async ({ address, serverPid }) => {
      const client = await createLoadClient(address)
      try {
        const bench: ApiBench = { client, serverPid, inFlight, context, versions: [] }
        await prepareNamespace(client, namespace)
        const measured: Measurement[] = []
        for (const load of loads) measured.push(await measure(bench, load))
        return [...measured, ...(await measureWatches(bench)), ...(await measureLists(bench))]
      } finally {
        client.close()
      }
    }),
}

async function measure(bench: ApiBench, load: Load): Promise<Measurement> {
  bench.context.progress(load.what)
  await load.prepare?.(bench)
  const before = usageOf(bench.serverPid)
  const results: LoadResult[] = []
  for (let repeat = 0; repeat < repeats; repeat++) {
    bench.context.signal.throwIfAborted()
    const first = repeat * load.count
    const request = (index: number, worker: number) => load.request(bench, first + index, worker)
    results.push(await bench.client.loop(load.count, load.inFlight ?? bench.inFlight, request, (answer, worker) => load.answered?.(bench, answer, worker)))
  }
  const cpuMicros = ((usageOf(bench.serverPid).cpuSeconds - before.cpuSeconds) * 1e6) / (repeats * load.count)
  const latencies = results.flatMap((result) => result.latencies)
  return {
    what: load.what,
    unit: '/s',
    values: results.map((result) => result.perSecond),
    note: `p50 ${rounded(median(latencies))} ms, p99 ${rounded(percentile(latencies, 0.99))} ms, server CPU ${rounded(cpuMicros)} µs each`,
  }
}
