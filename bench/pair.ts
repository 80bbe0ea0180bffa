/**
 * Compares the CPU time per request of this build with that of another commit: `make bench PAIR=COMMIT`, or
 * `node --import tsx bench/pair.ts COMMIT [load…]`. Each pair starts a fresh API server of both builds and gives them the same loads in turn, so
 * that whatever else the machine does slows both alike. A load whose 95 % interval of the ratio lies wholly above 1.03 has grown: exit code 1.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { type ApiBench, withApiBench } from './api/apiBench.ts'
import { type Load, loads } from './api/loads.ts'
import { withCheckout } from './tools/checkout.ts'
import { cpuMicrosOf, machineFacts } from './tools/machine.ts'
import { median, type RatioInterval, ratioInterval, rounded } from './tools/statistics.ts'

const pairs = 10
/** Counted rounds of each load in each pair. */
const rounds = 5
/** A round has a part of a load's requests: many short rounds in turn are steadier than few long ones. */
const shorter = 2
const grownAbove = 1.03
/** Shorter loads end before their CPU time stands out from noise. */
const leastCount = 1_000

type Costs = Readonly<Record<'this' | 'other', number[]>>

const [commit, ...names] = process.argv.slice(2)
const chosen = loads.filter(({ what, count }) => (names.length > 0 ? names.includes(what) : count >= leastCount))
if (!commit || chosen.length === 0) {
  console.error(`usage: bench/pair.ts COMMIT [load…]; loads: ${loads.map(({ what }) => `"${what}"`).join(', ')}`)
  process.exit(2)
}
process.exit(await main(commit))

async function main(other: string): Promise<number> {
  for (const [name, value] of Object.entries(machineFacts())) console.log(`${name}: ${value}`)
  const dir = mkdtempSync(path.join(os.tmpdir(), 'skiff-pair-'))
  const stopping = new AbortController()
  process.once('SIGINT', () => stopping.abort(new Error('interrupted')))
  try {
    console.error(`  building ${other}`)
    const costs = await withCheckout(dir, other, (checkout) => measurePairs(dir, path.join(checkout, 'bin/skiff'), stopping.signal))
    return report(other, costs)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

async function measurePairs(dir: string, otherSkiff: string, signal: AbortSignal): Promise<ReadonlyMap<string, Costs>> {
  const costs = new Map<string, Costs>(chosen.map(({ what }) => [what, { this: [], other: [] }]))
  for (let pair = 1; pair <= pairs; pair++) {
    signal.throwIfAborted()
    console.error(`  pair ${pair} of ${pairs}`)
    await withApiBench({ dir, signal, name: 'this' }, (ours) =>
      withApiBench({ dir, signal, name: 'other', command: otherSkiff }, async (theirs) => {
        for (const load of chosen) {
          const [own, foreign] = await measureBoth(load, ours, theirs, pair % 2 === 0)
          costs.get(load.what)?.this.push(own)
          costs.get(load.what)?.other.push(foreign)
        }
      }),
    )
  }
  return costs
}

/** The builds take turns round by round; the first round warms up. Each gets the median of its other rounds, in microseconds per request. */
async function measureBoth(load: Load, ours: ApiBench, theirs: ApiBench, startsWithOther: boolean): Promise<readonly [number, number]> {
  const sides = [
    { bench: ours, micros: [] as number[] },
    { bench: theirs, micros: [] as number[] },
  ] as const
  for (const { bench } of sides) await load.prepare?.(bench)
  for (let round = 0; round <= rounds; round++) {
    for (const { bench, micros } of startsWithOther ? sides.toReversed() : sides) {
      const used = await cpuMicrosPerRequest(bench, load, round)
      if (round > 0) micros.push(used)
    }
  }
  return [median(sides[0].micros), median(sides[1].micros)]
}

async function cpuMicrosPerRequest(bench: ApiBench, load: Load, round: number): Promise<number> {
  const count = Math.floor(load.count / shorter)
  const before = cpuMicrosOf(bench.serverPid)
  const request = (index: number, worker: number) => load.request(bench, round * count + index, worker)
  await bench.client.loop(count, load.inFlight ?? bench.inFlight, request, (answer, worker) => load.answered?.(bench, answer, worker))
  return (cpuMicrosOf(bench.serverPid) - before) / count
}

function report(other: string, costs: ReadonlyMap<string, Costs>): number {
  let hasGrown = false
  console.log(`\nCPU time of the API server per request, ${pairs} pairs; ratio of this build to ${other}, with its 95 % interval`)
  for (const [what, { this: ours, other: theirs }] of costs) {
    const interval = ratioInterval(ours, theirs)
    const grown = interval.low > grownAbove
    hasGrown ||= grown
    console.log(`  ${what}: ${rounded(median(ours))} µs, ${rounded(median(theirs))} µs; ${shown(interval)}${grown ? ' GROWN' : ''}`)
  }
  return hasGrown ? 1 : 0
}

function shown({ mean, low, high }: RatioInterval): string {
  return `${mean.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`
}
