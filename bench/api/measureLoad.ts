/** Runs one load several times: its rate, its latencies, and the server's CPU time for each request. */
import type { Measurement } from '../scenario.ts'
import type { LoadResult } from '../tools/load.ts'
import { usageOf } from '../tools/machine.ts'
import { median, percentile, rounded } from '../tools/statistics.ts'
import type { ApiBench } from './apiBench.ts'
import type { Load } from './loads.ts'

export interface LoadMeasurement extends Measurement {
  readonly cpuMicros: number
}

export async function measureLoad(bench: ApiBench, load: Load, repeats: number): Promise<LoadMeasurement> {
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
    cpuMicros,
  }
}
