/**
 * What the trace costs the API server: CPU time per request without a reader, with one reader who follows an object, and with every request recorded. Three
 * servers get the same loads in turn. What the trace costs without a reader is measured against another commit: `make bench PAIR=COMMIT`.
 */
import { type ApiBench, namespace, withApiBench } from '../api/apiBench.ts'
import { type Load, loads } from '../api/loads.ts'
import type { Measurement, Scenario, ScenarioContext } from '../scenario.ts'
import { cpuMicrosOf } from '../tools/machine.ts'
import { median } from '../tools/statistics.ts'

const rounds = 8
/** A round has a part of a load's requests: many short rounds in turn are steadier than few long ones. */
const shorter = 4
const chosen = ['create', 'get']
const mostOfReader = 1.1

type Side = 'no reader' | 'one reader' | 'every request'

export const traces: Scenario = {
  name: 'traces',
  about: 'CPU time per request without a reader of traces, with one, and with every request recorded',
  run: (context) =>
    withApiBench({ ...context, name: 'no-reader' }, (none) =>
      withApiBench({ ...context, name: 'one-reader' }, async (one) => {
        await one.client.ask('POST', '/skiff/traces/rules', { object: `configmaps/${namespace}/cm-000001`, seconds: 3600 })
        return withApiBench({ ...context, name: 'every-request', flags: ['--trace-requests-every=1'] }, (every) =>
          measured(context, { 'no reader': none, 'one reader': one, 'every request': every }),
        )
      }),
    ),
}

async function measured(context: ScenarioContext, benches: Readonly<Record<Side, ApiBench>>): Promise<Measurement[]> {
  const found: Measurement[] = []
  for (const load of loads.filter(({ what }) => chosen.includes(what))) {
    const micros: Record<Side, number[]> = { 'no reader': [], 'one reader': [], 'every request': [] }
    for (let round = 0; round <= rounds; round++) {
      context.signal.throwIfAborted()
      context.progress(`traces, ${load.what}, ${round} of ${rounds}`)
      for (const [side, bench] of Object.entries(benches) as [Side, ApiBench][]) {
        const used = await microsPerRequest(bench, load, round)
        // The first round warms up.
        if (round > 0) micros[side].push(used)
      }
    }
    const ratio = (side: Side) => median(micros[side]) / median(micros['no reader'])
    found.push({ what: `${load.what}, no reader`, unit: 'µs CPU', values: micros['no reader'] })
    found.push({ what: `${load.what}, one reader, ratio`, unit: '', values: [ratio('one reader')], target: { atMost: mostOfReader } })
    found.push({ what: `${load.what}, every request recorded, ratio`, unit: '', values: [ratio('every request')] })
  }
  return found
}

async function microsPerRequest(bench: ApiBench, load: Load, round: number): Promise<number> {
  const count = Math.floor(load.count / shorter)
  const before = cpuMicrosOf(bench.serverPid)
  await bench.client.loop(count, bench.inFlight, (index, worker) => load.request(bench, round * count + index, worker))
  return (cpuMicrosOf(bench.serverPid) - before) / count
}
